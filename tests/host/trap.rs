//! The end of a VM.

use std::fmt::{self, Display};

/// The number of log lines in a trap's message.
const LINES: usize = 10;

/// The VM died in a call, and is unusable.
#[derive(Debug, Clone)]
pub struct Trap {
    pub call: String,
    pub cause: String,
    pub log: Vec<String>,
}

impl Trap {
    pub fn new(call: &str, cause: impl Display, log: &[String]) -> Trap {
        let log = log.iter().rev().take(LINES).rev().cloned().collect();
        Trap { call: call.into(), cause: cause.to_string(), log }
    }
}

impl Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the VM trapped in {}: {}\nlog:\n{}", self.call, self.cause, self.log.join("\n"))
    }
}

/// Why a configuration was not applied.
#[derive(Debug, Clone)]
pub enum StartError {
    /// The module has an unknown import, or is not a filter.
    Unloadable(String),
    /// The module refused it, and logged these lines.
    Refused(Vec<String>),
    Trapped(Trap),
}

impl From<Trap> for StartError {
    fn from(trap: Trap) -> StartError {
        StartError::Trapped(trap)
    }
}

impl Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Unloadable(cause) => write!(f, "the module cannot be loaded: {cause}"),
            StartError::Refused(log) => {
                write!(f, "the configuration was refused:\n{}", log.join("\n"))
            }
            StartError::Trapped(trap) => Display::fmt(trap, f),
        }
    }
}
