//! Tests that bring load and print figures: `make test-all` runs them, `make test` does not. They assert only what no
//! delay can break.

mod concurrency;
mod etcd;
mod fleet;
mod flood;
mod holding;
mod in_flight;
mod remote_changes;
mod to_redis;
mod updates;
