//! Callers with plans that change over time, under every algorithm.

mod law;
mod memory;
mod redis;
mod resets;
