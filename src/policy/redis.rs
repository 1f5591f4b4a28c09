//! The Redis that all gateways share.

use crate::port::Destination;
use crate::time::Micros;

/// The largest number of shards.
pub const MOST_SHARDS: u16 = 1024;

/// A Redis and its connection parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redis {
    /// Where the host has it.
    pub destination: Destination,
    /// Timeout of a call in ticks.
    pub timeout: Micros,
    /// The behaviour of `global` rules while it is unavailable.
    pub on_failure: OnFailure,
    /// The environment variable of the VM with the user name.
    pub username_env: Option<String>,
    /// The environment variable of the VM with the password.
    pub password_env: Option<String>,
    /// The secret of the host with the password, which has precedence where the host has secrets.
    pub password_secret: Option<Secret>,
    /// The database number.
    pub db: u32,
    /// The number of shards, 1 … [`MOST_SHARDS`]. A cluster or a proxy may distribute them.
    pub parts: u16,
    /// How many gateways there are at least, before Redis has reported their number.
    pub gateways: u64,
}

/// A secret of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// The configuration source from which the host gets it, as JSON. `None` for a static one.
    pub sds: Option<String>,
}

/// The behaviour of `global` rules while Redis is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Each gateway enforces its share of the limit.
    Gateway,
    /// They admit everything.
    Allow,
    /// They refuse everything.
    Deny,
}
