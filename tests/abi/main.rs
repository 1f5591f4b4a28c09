//! The shipped module in a host with Envoy's semantics: seeded and deterministic. Every host call
//! and instruction is counted.

mod answers;
mod configuration;
mod costs;
mod faithful;
mod holding;
mod hostile;
mod memory;
mod remote;
mod settling;
mod updates;
mod workers;
