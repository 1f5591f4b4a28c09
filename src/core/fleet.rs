//! One limit for the whole fleet: usage counted in Redis.

pub mod desk;
mod head;
pub mod link;
mod offset;
pub mod resp;
pub mod script;
