//! Stores of several workers, and rules for them.

pub mod gateway;
pub mod rule;
