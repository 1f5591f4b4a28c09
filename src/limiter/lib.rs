//! One decision, from the request to what is told of it; settling; and what operators ask.

pub mod bans;
pub mod engine;
pub mod report;
pub mod sizing;
pub mod verdict;
