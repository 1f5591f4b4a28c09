//! The script in a real Redis, compared with the same steps in Rust.
//!
//! Requires `redis-server`. Each test starts and stops one on a separate socket.

#![allow(clippy::disallowed_methods, reason = "a real process runs on a real clock")]

mod agreement;
mod bans;
mod calls;
mod clocks;
mod corrupt;
mod daily;
mod expiry;
mod failures;
mod fleet;
mod law;
mod overflow;
mod resets;
mod scopes;
mod settlements;
mod shards;
mod small;
mod units;
