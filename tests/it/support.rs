//! Helpers of several tests.

pub mod algorithm;
pub mod allocator;
pub mod documents;
pub mod gateway;
pub mod queue;
pub mod redis;
pub mod redis_rule;
pub mod steps;
pub mod structural;
