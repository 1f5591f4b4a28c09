//! The script in a real Redis against the same steps in Rust.
//!
//! Needs `redis-server`; each test starts its own, on a socket of its own, and stops it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]
#![allow(clippy::disallowed_methods, reason = "a real process runs on a real clock")]

mod bans;
#[path = "../laws/bound.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod bound;
#[path = "../laws/case.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod case;
mod clocks;
mod crowd;
mod daily;
mod expiry;
mod failures;
mod fleet;
mod foreign;
mod law;
mod leases;
mod loans;
#[path = "../model/model.rs"]
mod model;
mod played;
mod rules;
mod same;
#[path = "../it/seed.rs"]
mod seed;
mod server;
#[path = "../simulation/simulation.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod simulation;
mod speed;
mod spikes;
#[path = "../laws/stream.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod stream;
mod thrift;
