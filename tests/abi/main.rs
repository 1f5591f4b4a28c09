//! The shipped module in a host that copies Envoy's semantics: seeded, deterministic, with every
//! host call and instruction counted.

mod answers;
mod bans;
mod clocks;
mod configuration;
mod costs;
mod faithful;
mod fleet;
mod holding;

mod hostile;
mod hot;
mod memory;
mod midnight;
mod operator;
mod remote;
mod roots;
mod settling;
mod shared;
mod survival;
mod workers;
