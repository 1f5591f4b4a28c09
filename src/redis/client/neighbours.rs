//! Other rules under the same namespace: of another environment, or of another plugin. A plugin is
//! known by its root id, under which other rules are an update.

use super::Client;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;

/// How often a worker reports the rules of its gateway.
const REPORTED: Micros = SECOND;

/// How long other rules are in use before they are logged. A change of the rules takes less time.
const PATIENCE: Micros = 20 * SECOND;

/// Other rules in the namespace, as far as a worker knows.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    /// The root id of the plugin.
    root_id: String,
    /// The number of the rules. Zero if it is not known.
    rules: u64,
    /// The latest report.
    reported: Micros,
    /// Since when other rules are in use.
    since: Option<Micros>,
    /// Whether they have been logged, here or by another worker.
    is_logged: bool,
}

impl Client {
    /// Reports these rules to Redis from now on, as the latest ones of this plugin of the gateway.
    #[must_use]
    pub fn with_rules(mut self, root_id: &str, rules: u64) -> Client {
        (self.neighbours.root_id, self.neighbours.rules) = (root_id.into(), rules);
        if self.record().0.0 != rules {
            self.write_record(false);
        }
        self
    }

    /// The number of the rules to report in a call at `now`. Former configurations, which only
    /// serve their last requests, report none.
    pub(super) fn reported_rules(&mut self, now: Micros) -> Option<u64> {
        let (rules, reported) = (self.neighbours.rules, self.neighbours.reported);
        if rules == 0 || now < reported.saturating_add(REPORTED) {
            return None;
        }
        self.neighbours.reported = now;
        let ((latest, is_logged), _) = self.record();
        self.neighbours.is_logged |= is_logged;
        (latest == rules).then_some(rules)
    }

    /// Redis has replied whether other rules are in use. One worker logs it.
    pub(super) fn meet(&mut self, is_mixed: bool, now: Micros) {
        if !is_mixed {
            self.neighbours.since = None;
            return;
        }
        let since = *self.neighbours.since.get_or_insert(now);
        if self.neighbours.is_logged || now.saturating_sub(since) < PATIENCE {
            return;
        }
        self.neighbours.is_logged = true;
        if self.write_record(true) {
            self.log_lines.push(
                "global rules: another gateway or plugin has other rules under this namespace in the same Redis, and both use \
                 up the same limits where rules are equal; set another `namespace` in each environment"
                    .into(),
            );
        }
    }

    /// The number of the latest rules of this plugin, whether others have been logged, and the version of this record.
    fn record(&self) -> ((u64, bool), Option<u32>) {
        let ([rules, is_logged], number) = words::read(&*self.data, &self.record_key());
        ((rules, is_logged != 0), number)
    }

    /// Returns true if this worker has changed the record.
    fn write_record(&self, is_logged: bool) -> bool {
        let (known, number) = self.record();
        let record = (self.neighbours.rules, is_logged);
        let words = [record.0, record.1.into()];
        known != record && words::write(words, &*self.data, &self.record_key(), number)
    }

    fn record_key(&self) -> String {
        format!("{}/rules/{}", self.key, self.neighbours.root_id)
    }
}
