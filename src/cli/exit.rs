//! The exit code of the command.

use std::process::ExitCode;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Success.
    Fine = 0,
    /// The rules have problems.
    Problems = 1,
    /// The input is unreadable, or has no usable content.
    Unusable = 2,
    /// The result lacks a part of the input.
    Incomplete = 3,
    /// The command was interrupted, and reported its results so far.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
