//! The core of Diana: rules, what they count, and what they decide.
//!
//! It knows no host, reads no clock, and runs in a browser page as well as in a proxy.
//! `ARCHITECTURE.md` shows the whole.

pub mod address;
pub mod algorithm;
pub mod ban;
pub mod bans;
pub mod bloom;
pub mod calendar;
pub mod cost;
pub mod decision;
pub mod engine;
pub mod hot;
pub mod identity;
pub mod json;
pub mod key;
pub mod matching;
mod number;
pub mod permit;
pub mod plan;
pub mod policy;
pub mod port;
pub mod redis;
pub mod report;
pub mod ring;
pub mod settlement;
pub mod settling;
pub mod sizing;
pub mod spelling;
pub mod store;
pub mod time;
pub mod tree;
pub mod verdict;
pub mod words;
