//! A root without any good document, in a process whose environment chose that it admits.
//!
//! Envoy answers every request of a refused configuration with an error. A running process keeps
//! the last good configuration instead, but a new one has none, so one typo would take each new
//! gateway down while it is ready. Shared data records for each root id that a document was good
//! in this process: then a bad one is refused as usual.
//!
//! Envoy remembers for each configuration whether the module accepted it, and does not ask again.
//! So a text that was admitted once cannot be refused later: only its workers would fail.

use super::host::{Host, Level};
use diana_policy::key::KeyHasher;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::{Metric, words};

/// The environment variable of the VM that decides about a root without a good document.
const VARIABLE: &str = "DIANA_WITHOUT_DOCUMENT";

/// Its allowed value.
const ADMIT: &str = "admit";

/// Maximum number of texts that are remembered as admitted.
const MOST_TEXTS: usize = 64;

/// The time between two reports of the same gateway.
const INTERVAL: Micros = 60 * SECOND;

/// A root that admits every request.
pub(crate) struct WithoutDocument {
    root_id: String,
    /// The problems of its document.
    problems: String,
    next: Micros,
    /// Whether it counts in the gauge.
    is_counted: bool,
}

impl WithoutDocument {
    /// Begins to admit, if the environment of the VM chose that, and no document of this root id
    /// was good in this process when it was first configured with this text.
    pub(crate) fn begin(
        root_id: &str,
        text: &[u8],
        problems: &str,
        host: &dyn Host,
    ) -> Option<WithoutDocument> {
        let wish = host.environment().variable(VARIABLE)?;
        if wish != ADMIT {
            let line = format!("`{VARIABLE}` is `{wish}`, allowed: `{ADMIT}`; it has no effect");
            host.log(Level::Error, &line);
            return None;
        }
        if !admits(root_id, text, &*host.data()) {
            return None;
        }
        let (root_id, problems) = (root_id.into(), problems.into());
        let mut state = WithoutDocument { root_id, problems, next: 0, is_counted: false };
        state.report(host);
        Some(state)
    }

    /// When its next report is due.
    pub(crate) fn next(&self) -> Micros {
        self.next
    }

    /// Reports that it has no document, once a minute in each gateway.
    pub(crate) fn report(&mut self, host: &dyn Host) {
        let now = host.monotonic();
        self.next = now.saturating_add(INTERVAL);
        self.count(true, host);
        if reserve(&self.root_id, &*host.data(), now) {
            let first = format!(
                "`{}` had no good document in this process, so all requests are admitted, since \
                 `{VARIABLE}` is `{ADMIT}`; configuration rejected:",
                self.root_id
            );
            host.log(Level::Error, &first);
            self.problems.lines().for_each(|line| host.log(Level::Error, line));
        }
    }

    /// The root ends, or has another configuration.
    pub(crate) fn end(&mut self, host: &dyn Host) {
        self.count(false, host);
    }

    /// Adds it to the gauge of workers without a document, or removes it.
    fn count(&mut self, is_counted: bool, host: &dyn Host) {
        let was_counted = std::mem::replace(&mut self.is_counted, is_counted);
        if was_counted != is_counted {
            let change = i64::from(is_counted) - i64::from(was_counted);
            host.add(Metric::WithoutDocument, &[&self.root_id], change);
        }
    }
}

/// Records that a document of this root id was good in this process.
pub(crate) fn record_good(root_id: &str, data: &dyn SharedData) {
    let key = key(root_id, "good");
    if data.get(&key).is_none() {
        // A failed write means that another worker has written it.
        data.swap(&key, &[1], None);
    }
}

/// Returns true if a bad text is admitted, and remembers it.
fn admits(root_id: &str, text: &[u8], data: &dyn SharedData) -> bool {
    let mut hasher = KeyHasher::public();
    hasher.part(0, text);
    let digest = hasher.finish().hash;
    let was_good = data.get(&key(root_id, "good")).is_some();
    let admitted = key(root_id, "admitted");
    loop {
        let (mut known, number) = words::read_all(data, &admitted);
        if known.contains(&digest) {
            return true;
        }
        if was_good {
            return false;
        }
        known.drain(..(known.len() + 1).saturating_sub(MOST_TEXTS));
        known.push(digest);
        // It fails only if another worker has written.
        if words::write_all(&known, data, &admitted, number) {
            return true;
        }
    }
}

/// Returns true if no worker has logged within the interval, and records that this one does.
fn reserve(root_id: &str, data: &dyn SharedData, now: Micros) -> bool {
    let key = key(root_id, "reported");
    let ([last], number) = words::read(data, &key);
    // The timers of the workers fire at almost the same time.
    let is_due = number.is_none() || now.saturating_sub(last) >= INTERVAL - SECOND || last > now;
    is_due && words::write([now], data, &key, number)
}

fn key(root_id: &str, what: &str) -> String {
    format!("diana/1/{root_id}/document/{what}")
}
