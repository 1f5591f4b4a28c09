//! The outcome of a request, and its cost.

use std::collections::BTreeMap;

use super::guest::Calls;
use super::pairs::Headers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamOutcome {
    /// The request is pending.
    Held,
    /// The request passed to the upstream.
    Admitted,
    /// The filter responded.
    Refused,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub outcome: StreamOutcome,
    /// When it passed to the upstream, on the monotonic clock.
    pub went_on: Option<u64>,
    /// The headers that the client receives, including `:status`.
    pub headers: Headers,
    pub body: Vec<u8>,
    /// `%RESPONSE_CODE_DETAILS%`.
    pub details: String,
    pub filter_state: BTreeMap<String, Vec<u8>>,
    pub calls: Calls,
    /// The work of the module, in wasmi's unit.
    pub fuel: u64,
}

impl Answer {
    pub fn is_admitted(&self) -> bool {
        self.outcome == StreamOutcome::Admitted
    }

    pub fn is_held(&self) -> bool {
        self.outcome == StreamOutcome::Held
    }

    pub fn is_refused(&self) -> bool {
        self.outcome == StreamOutcome::Refused
    }

    pub fn status(&self) -> u16 {
        self.header(":status").and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value)?;
        std::str::from_utf8(value).ok()
    }

    /// `retry-after` in seconds.
    pub fn retry_after(&self) -> Option<u64> {
        self.header("retry-after")?.parse().ok()
    }

    /// The number of calls of a host function.
    pub fn calls(&self, name: &str) -> u64 {
        self.calls.get(name).copied().unwrap_or_default()
    }
}
