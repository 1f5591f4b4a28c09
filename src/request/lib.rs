//! Reads requests: matching of limits, callers, cost, plan, and the usage at the end of a stream.

pub mod cost;
pub mod identity;
pub mod matching;
mod meanings;
pub mod plan;
pub mod settling;
