//! Tests with load that print figures. Only `make test-all` runs them. They assert only properties
//! that hold for any delay.

mod concurrency;
mod etcd;
mod fleet;
mod flood;
mod holding;
mod in_flight;
mod redis_connection;
mod remote_changes;
mod updates;
