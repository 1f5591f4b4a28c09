//! What the command's exit code says.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything is as it should be.
    Fine = 0,
    /// The rules have problems.
    Problems = 1,
    /// What was given cannot be read, or holds nothing to work with.
    Unusable = 2,
    /// It was interrupted, and told what was known by then.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
