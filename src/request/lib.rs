//! Reading a request: which rules apply, who calls, what it costs, by which plan, and what it used in the end.

pub mod cost;
pub mod identity;
pub mod matching;
pub mod plan;
pub mod settling;
