//! Tests that bring load or judge by a clock, and so depend on the machine: `make test-all` runs
//! them, `make test` does not.

pub mod algorithms;
mod bans;
mod etcd;
pub mod fleet;
mod flood;
mod holding;
pub mod in_flight;
pub mod logins;
mod remote_changes;
pub mod reset_storm;
pub mod settling_crowd;
mod to_redis;
pub mod unused;
mod updates;
mod workers;
