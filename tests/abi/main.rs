//! The shipped module in a host that copies Envoy's semantics: seeded, deterministic, with every
//! host call and instruction counted.

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
