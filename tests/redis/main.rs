//! The script in a real Redis against the same steps in Rust.
//!
//! Needs `redis-server`; each test starts its own, on a socket of its own, and stops it.

#![allow(clippy::disallowed_methods, reason = "a real process runs on a real clock")]

mod bans;
mod calls;
mod clocks;
mod corrupt;
mod crowd;
mod daily;
mod expiry;
mod failures;
mod fleet;
mod law;
mod leases;
mod lifted;
mod parts;
mod same;
mod settlements;
mod speed;
mod units;
