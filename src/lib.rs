//! Diana: a rate-limit filter for Envoy and Istio.
//!
//! The crate without the feature `filter` is the pure core: it knows no host, reads no clock, and
//! runs in a browser page as well as in a proxy. `ARCHITECTURE.md` shows the whole.

pub mod actor;
pub mod address;
pub mod algorithm;
pub mod ban;
pub mod bloom;
pub mod caller;
pub mod config;
pub mod decision;
pub mod engine;
#[cfg(feature = "filter")]
mod filter;
pub mod fleet;
pub mod hold;
pub mod hot;
pub mod json;
pub mod key;
pub mod metrics;
pub mod policy;
pub mod port;
pub mod remote;
pub mod ring;
pub mod route;
pub mod sizing;
pub mod store;
pub mod text;
pub mod tickets;
pub mod time;
pub mod tree;
pub mod verdict;
mod words;
