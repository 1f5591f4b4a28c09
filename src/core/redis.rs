//! One limit for the whole fleet: usage counted in Redis.

pub mod bans;
pub mod client;
pub mod handle;
mod health;
pub mod part;
pub mod protocol;
pub mod store;
