//! The result of a replay.

use diana_policy::time::{Micros, SECOND};
use jiff::Timestamp;

use super::side::Side;
use crate::log::LogSummary;

/// The result of a replay.
pub struct ReplayReport<'r> {
    /// The files of the rules, and of the rules of the comparison.
    pub files: (String, Option<String>),
    /// The result of the rules.
    pub side: &'r Side,
    /// The result of the other rules, and the differences.
    pub other: Option<(&'r Side, &'r Differences)>,
    /// Statistics of the log.
    pub seen: &'r LogSummary,
    /// The times of the first and the last request.
    pub between: (Micros, Micros),
    /// The numbers of gateways and of workers in each.
    pub fleet: (u16, u16),
    /// False if it was interrupted.
    pub is_whole: bool,
}

/// The decisions of both sides, in numbers of requests.
#[derive(Debug, Default)]
pub struct Differences {
    /// Refused by neither.
    pub neither: u64,
    /// Refused by both.
    pub both: u64,
    /// Refused by the rules only.
    pub own: u64,
    /// Refused by the other rules only.
    pub other: u64,
}

impl Differences {
    /// Counts a request: whether each side refused it.
    pub fn add(&mut self, own: bool, other: bool) {
        match (own, other) {
            (false, false) => self.neither += 1,
            (true, true) => self.both += 1,
            (true, false) => self.own += 1,
            (false, true) => self.other += 1,
        }
    }
}

impl ReplayReport<'_> {
    /// Notes on the log and the replay, one line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let ReplayReport { seen, side, .. } = self;
        if !self.is_whole {
            notes.push("interrupted: the report covers the lines that were read".into());
        }
        notes.extend(seen.notes());
        if seen.whole_seconds {
            notes.push(
                "the log has whole seconds only: the requests of a second are replayed at its beginning".into(),
            );
        }
        if side.has_slots && !seen.tells_durations {
            notes.push("the log has no durations, so no two requests are in flight at once".into());
        }
        let idle = side.by_rule().filter(|(_, counts, _)| counts.consulted() == 0);
        let idle: Vec<&str> = idle.map(|(name, ..)| name).collect();
        if !idle.is_empty() {
            notes.push(format!(
                "never checked: {}; no request matches these rules, or the log lacks the values of their actors; name a field \
                 with `--set header:NAME=FIELD`",
                idle.join(", ")
            ));
        }
        if side.has_quotas && self.fleet != (1, 1) {
            notes.push("the replay counts rules with `quota` per worker".into());
        }
        notes
    }
}

/// An instant in UTC, to the second.
pub fn instant(at: Micros) -> String {
    let at = i64::try_from(at / SECOND).ok().and_then(|at| Timestamp::from_second(at).ok());
    at.map_or_else(|| "?".into(), |at| at.to_string())
}
