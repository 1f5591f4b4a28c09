//! The Redis in which all gateways count together.

use crate::time::Micros;

/// A Redis, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redis {
    /// The host's name for it.
    pub cluster: String,
    /// Ticks that an answer may take.
    pub timeout: Micros,
    /// What becomes of `global` rules while it does not answer.
    pub on_failure: OnFailure,
    /// The variable of the VM's environment that holds the user's name.
    pub username_env: Option<String>,
    /// The variable of the VM's environment that holds the password.
    pub password_env: Option<String>,
    /// The number of the database.
    pub db: u32,
    /// Into how many parts its keys fall, 1 … 1,024: a cluster or a proxy may keep each elsewhere.
    pub parts: u16,
}

/// What becomes of `global` rules while Redis does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Each gateway limits by itself, to its share.
    Gateway,
    /// They admit everything.
    Allow,
    /// They refuse everything.
    Deny,
}
