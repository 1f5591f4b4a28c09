//! Callers who have other plans at other times, under every algorithm.

mod fleet;
mod law;
mod lifted;
mod memory;
mod settling;
