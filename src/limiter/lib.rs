//! One decision, from the request to its report; settling; and questions of operators.

pub mod bans;
pub mod engine;
pub mod report;
pub mod sizing;
pub mod verdict;
