//! One limit for the whole fleet: usage counted in Redis.

pub mod client;
mod health;
pub mod link;
pub mod protocol;
