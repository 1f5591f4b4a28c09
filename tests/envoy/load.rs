//! Tests that bring load or judge by a clock, and so depend on the machine: `make test-all` runs
//! them, `make test` does not.

pub mod algorithms;
mod bans;
mod calendar;
mod etcd;
pub mod fleet;
mod flood;
mod holding;
pub mod in_flight;
pub mod logins;
mod midnight;
mod plans;
mod remote_changes;
mod replay;
pub mod reset_storm;
pub mod settling_crowd;
mod to_redis;
mod trap;
pub mod unused;
mod updates;
mod workers;
