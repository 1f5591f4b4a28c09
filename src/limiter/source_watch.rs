//! Notices a rule with a source that never has a value: a mistyped header, a claim that no token
//! has, an address that the host does not know, a response without the usage.
//!
//! The workers of a gateway count together in one value of shared data, so that the log has one
//! line. Words: a hash of the configuration, then the number of requests without a value.

use diana_policy::key::KeyHasher;
use diana_policy::port::SharedData;
use diana_policy::tree::Tree;
use diana_policy::words;
use diana_policy::{Actor, IdentitySource, ResponseSource, Term};

/// Requests without a caller, after which the log has a line.
pub(crate) const REQUESTS: u64 = 1000;

/// Responses without the usage, after which the log has a line. Each may be charged `max`, so that
/// callers are soon refused, and no more responses come.
pub(crate) const RESPONSES: u64 = 10;

/// Stands in place of the number: a request had a value, or the log has the line.
const OVER: u64 = u64::MAX;

/// The values of a source under one rule.
pub(crate) struct SourceWatch {
    /// The source, for the log.
    source: String,
    /// The number without a value, after which the log has a line.
    enough: u64,
    /// Whether a request had a value.
    pub(crate) is_found: bool,
    /// Requests without one since the last report.
    missed: u64,
    /// Whether enough had none at the last report. Until the next one, another worker reports a value that it has seen.
    pub(crate) is_enough: bool,
    /// Whether all is reported.
    is_over: bool,
}

impl SourceWatch {
    /// Watches a source with this description; `None` has a value in every request. `enough` is the
    /// number without a value, after which the log has a line.
    pub(crate) fn new(source: Option<String>, enough: u64) -> SourceWatch {
        let is_over = source.is_none();
        let source = source.unwrap_or_default();
        SourceWatch { source, enough, is_found: false, missed: 0, is_enough: false, is_over }
    }

    /// Counts a request without a value, unless it was counted before.
    pub(crate) fn miss(&mut self, is_new: bool) {
        self.missed += u64::from(is_new);
    }

    /// Returns true if [`SourceWatch::report`] is due.
    pub(crate) fn is_due(&self) -> bool {
        !self.is_over && (self.is_found || self.missed > 0 || self.is_enough)
    }

    /// Adds the requests of this worker to those of the others, in the value `name`. Returns true
    /// if the log should have a line now. If another worker is faster, the next report adds them.
    pub(crate) fn report(&mut self, name: &str, data: &dyn SharedData) -> bool {
        let mut hasher = KeyHasher::public();
        hasher.part(0, self.source.as_bytes());
        let configuration = hasher.finish().hash;
        let ([before, count], number) = words::read::<2>(data, name);
        let before = if before == configuration { count } else { 0 };
        if before == OVER {
            (self.is_over, self.is_enough) = (true, false);
            return false;
        }
        let count = before.saturating_add(self.missed);
        let is_enough = !self.is_found && count >= self.enough;
        let is_over = self.is_found || is_enough && self.is_enough;
        let written = [configuration, if is_over { OVER } else { count }];
        if !words::write(written, data, name, number) {
            return false;
        }
        (self.missed, self.is_enough, self.is_over) = (0, is_enough && !is_over, is_over);
        is_over && !self.is_found
    }

    /// The line.
    pub(crate) fn line(&self, rule: &str, what: &str) -> String {
        let SourceWatch { source, enough, .. } = self;
        format!("rule `{rule}`: {enough} requests, and none of them had its {what}: {source}")
    }
}

/// An actor with its sources: `device (header "x-device-id" or client_address)`.
pub(crate) fn describe(actor: &Actor) -> String {
    let source = |IdentitySource { kind, value, options }: &IdentitySource| {
        let option = |(key, value): &(String, Tree)| format!(", {key}{}", spelled(value));
        let options: String = options.iter().map(option).collect();
        format!("{kind}{}{options}", spelled(value))
    };
    let sources: Vec<String> = actor.sources.iter().map(source).collect();
    format!("{} ({})", actor.name, sources.join(" or "))
}

/// A space and the texts of a value.
fn spelled(value: &Tree) -> String {
    match value {
        Tree::Text(text) => format!(" \"{text}\""),
        Tree::List(items) => items.iter().map(spelled).collect(),
        // Networks and flags.
        _ => String::new(),
    }
}

/// The sources of the usage, with `between` two of them: `header "x-cost"`.
pub(crate) fn describe_usage(terms: &[Term], between: &str) -> String {
    let source = |term: &Term| match &term.source {
        ResponseSource::Header(name) => format!("header \"{name}\""),
        ResponseSource::Trailer(name) => format!("trailer \"{name}\""),
        ResponseSource::Metadata { path, .. } => format!("metadata \"{}\"", path.join("\" \"")),
        ResponseSource::RequestBytes => "bytes of the request".into(),
        ResponseSource::ResponseBytes => "bytes of the response".into(),
        ResponseSource::Duration => "duration".into(),
    };
    terms.iter().map(source).collect::<Vec<_>>().join(between)
}
