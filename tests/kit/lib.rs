//! What the tests have in common: fakes of the host, the laws, a model of Redis's script, fleets that are
//! simulated.

pub mod fake;
pub mod host;
pub mod laws;
pub mod model;
pub mod rules;
pub mod seed;
pub mod simulation;
pub mod store;
