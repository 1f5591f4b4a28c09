//! One limit for the whole fleet: usage counted in Redis.

mod breaker;
pub mod client;
pub mod handle;
mod health;
pub mod ledger;
pub mod part;
pub mod pending;
pub mod protocol;
pub mod store;
pub mod target;
