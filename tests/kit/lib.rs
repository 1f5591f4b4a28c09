//! Shared parts of the tests: fakes of the host, the laws, a model of the Redis script, and a Redis
//! server per test.

pub mod bans;
pub mod choices;
#[cfg(unix)]
pub mod compare;
pub mod ending;
pub mod fake;
pub mod host;
pub mod in_flight;
pub mod laws;
pub mod model;
pub mod module;
pub mod oracle;
pub mod plans;
#[cfg(unix)]
pub mod process_clock;
pub mod rules;
pub mod seed;
#[cfg(unix)]
pub mod server;
pub mod store;
pub mod zones;
