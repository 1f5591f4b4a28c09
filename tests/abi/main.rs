//! The shipped module in a host with Envoy's semantics: seeded and deterministic. Every host call
//! and instruction is counted.

mod configuration;
mod costs;
mod holding;
mod host_model;
mod hostile;
mod memory;
mod remote;
mod responses;
mod settling;
mod updates;
mod workers;
