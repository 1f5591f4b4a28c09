//! Callers with plans that change over time, under every algorithm.

mod fleet;
mod law;
mod lifted;
mod memory;
mod settling;
