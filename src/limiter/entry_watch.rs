//! Notices entries that apply to no request, since a filter before Diana rewrites the path, or a
//! condition is mistyped.
//!
//! The workers of a gateway count together in one value of shared data. Words: a hash of the
//! entries, the number of requests, then a bit for each entry, set if it applied to a request.

use diana_policy::Limit;
use diana_policy::key::KeyHasher;
use diana_policy::port::SharedData;
use diana_policy::words;

/// Requests after which the log has a line.
const REQUESTS: u64 = 2_000;

/// Maximum number of entries in the line.
const NAMED: usize = 10;

/// The entries of a document, and the number of its requests.
pub(crate) struct EntryWatch {
    /// A hash of the entries.
    configuration: u64,
    /// The first rule of each entry. Empty if it has none.
    names: Vec<String>,
    /// Requests since the last report.
    requests: u64,
    /// The bits of shared data, when last written.
    applied: Vec<u64>,
    /// Whether the gateway has had enough requests for the line.
    is_over: bool,
}

/// A change of the entries that apply to no request.
pub(crate) struct UnusedEntries {
    /// Their number; 0 until the gateway has had enough requests.
    pub(crate) count: u64,
    /// The line of the log, once for each gateway.
    pub(crate) line: Option<String>,
}

impl EntryWatch {
    /// Watches these entries.
    pub(crate) fn new(limits: &[Limit]) -> EntryWatch {
        let mut hasher = KeyHasher::public();
        for limit in limits {
            hasher.part(0, &limit.fingerprint.to_le_bytes());
            hasher.part(1, &(limit.rules.len() as u64).to_le_bytes());
        }
        let name = |limit: &Limit| limit.rules.first().map(|rule| rule.name.clone());
        EntryWatch {
            configuration: hasher.finish().hash,
            names: limits.iter().map(|limit| name(limit).unwrap_or_default()).collect(),
            requests: 0,
            applied: vec![0; limits.len().div_ceil(64)],
            is_over: false,
        }
    }

    /// Adds `requests` of this worker, and the entries that applied to any of its requests, to those
    /// of the others, in the value `name`. If another worker is faster, the next report adds them.
    /// They replace those of other entries.
    pub(crate) fn report(
        &mut self,
        requests: u64,
        has_applied: impl Iterator<Item = bool>,
        name: &str,
        data: &dyn SharedData,
    ) -> Option<UnusedEntries> {
        self.requests += requests;
        let mut applied = self.applied.clone();
        let numbered = has_applied.enumerate().filter(|(_, has_applied)| *has_applied);
        for (index, _) in numbered {
            if let Some(word) = applied.get_mut(index / 64) {
                *word |= 1 << (index % 64);
            }
        }
        if applied == self.applied && (self.is_over || self.requests == 0) {
            return None;
        }
        let (words, number) = words::read_all(data, name);
        let (mut before, mut is_first) = (0, true);
        if let [configuration, count, known @ ..] = words.as_slice()
            && (*configuration, known.len()) == (self.configuration, applied.len())
        {
            (before, is_first) = (*count, false);
            applied.iter_mut().zip(known).for_each(|(word, known)| *word |= known);
        }
        let count = before.saturating_add(self.requests).min(REQUESTS);
        let written = [&[self.configuration, count], applied.as_slice()].concat();
        if !words::write_all(&written, data, name, number) {
            return None;
        }
        (self.requests, self.applied, self.is_over) = (0, applied, count == REQUESTS);
        let unused = if self.is_over { self.unused() } else { Vec::new() };
        let is_new = before < REQUESTS && !unused.is_empty();
        (self.is_over || is_first).then(|| UnusedEntries {
            count: unused.len() as u64,
            line: is_new.then(|| line(&unused)),
        })
    }

    /// The first rules of the entries that applied to no request.
    fn unused(&self) -> Vec<String> {
        let has_applied = |index: usize| {
            self.applied.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
        };
        let entries = self.names.iter().enumerate();
        let unused = entries.filter(|(index, name)| !name.is_empty() && !has_applied(*index));
        unused.map(|(_, name)| name.clone()).collect()
    }
}

fn line(unused: &[String]) -> String {
    let more = unused.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "{REQUESTS} requests, and none of them met the entries of these rules: {}{more}; conditions are compared with the path, \
         method, host and headers that Diana receives, after filters before it have changed them",
        unused.get(..NAMED).unwrap_or(unused).join(", ")
    )
}
