//! Callers with plans that change over time, under every algorithm.

mod fleet;
mod law;
mod memory;
mod resets;
mod settling;
