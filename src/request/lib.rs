//! Reading a request: matching of rules, its callers, cost and plan, and its usage in the end.

pub mod cost;
pub mod identity;
pub mod matching;
pub mod plan;
pub mod settling;
