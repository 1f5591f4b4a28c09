//! Processes replies of the configuration server.

use super::document::{Fetched, Unusable};
use super::head::Head;
use super::lead::LEASE;
use super::{Access, PollOutcome, Poller, Tag, digest, version_of};
use diana_limiter::sizing;
use diana_policy::Metric;
use diana_policy::time::Micros;

impl Poller {
    /// Processes a reply, or the reason why there is none. The next poll is at `due`. If another
    /// worker has written to shared data in the meantime, the leader polls again at once.
    pub(super) fn conclude(
        &mut self,
        reply: Result<Fetched, Unusable>,
        due: Micros,
        access: &Access<'_>,
    ) -> PollOutcome {
        let (head, number) = Head::read(access.data, &self.head);
        if head.leader != self.id {
            return PollOutcome::default();
        }
        let mut next = Head { due, until: access.now + LEASE, problem: 0, ..head };
        let outcome = match &reply {
            Ok(Fetched::Document(text, _)) => self.validate(text, &head, &mut next),
            Ok(Fetched::Unchanged(version)) if *version == head.version => {
                next.rejected = 0;
                self.unchanged(&head)
            }
            // Another document is in force by now.
            Ok(Fetched::Unchanged(_)) => return PollOutcome::default(),
            Err(unusable) => {
                let (count, why) = match unusable {
                    Unusable::Failed(why) => (Metric::RemoteFailed, why),
                    Unusable::Rejected(why) => (Metric::RemoteRejected, why),
                };
                next.problem = digest(&[why.as_bytes()]);
                self.problem(count, why, &head, &next)
            }
        };
        // The document is written before the head. A worker that reads it in between treats it as
        // damaged.
        let is_written = outcome.is_first
            && matches!(&reply, Ok(Fetched::Document(text, _)) if {
                let received = [&next.version.to_le_bytes(), text.as_slice()].concat();
                write(&self.received, &received, access);
                write(&self.document, text, access)
            });
        if outcome.is_first && !is_written || !next.write(access.data, &self.head, number) {
            return PollOutcome::default();
        }
        if outcome.is_first {
            self.version = next.version;
        }
        if let Ok(Fetched::Document(text, tag)) = reply {
            let version = version_of(&text);
            let tag = tag.filter(|_| version == next.version);
            self.tag = tag.map(|value| Tag { version, value });
        }
        outcome
    }

    /// Parses a document unless its version is known.
    fn validate(&self, text: &[u8], head: &Head, next: &mut Head) -> PollOutcome {
        let version = version_of(text);
        if version == head.version && version != self.unreadable {
            next.rejected = 0;
            return self.unchanged(head);
        }
        let bad = format!("version {version:016x} is invalid");
        if version == head.rejected {
            next.problem = version;
            return self.problem(Metric::RemoteRejected, &bad, head, next);
        }
        match self.reader.policy(text) {
            Ok(mut policy) => {
                (next.version, next.rejected) = (version, 0);
                let what = format!("version {version:016x} is now active");
                PollOutcome {
                    count: Some(Metric::RemoteFetched),
                    successes: vec![self.line(&what, &sizing::summary(&policy))],
                    failures: std::mem::take(&mut policy.warnings),
                    is_first: true,
                    policy: Some(policy),
                    ..PollOutcome::default()
                }
            }
            Err(problems) => {
                (next.problem, next.rejected) = (version, version);
                let mut outcome = self.problem(Metric::RemoteRejected, &bad, head, next);
                outcome.failures.extend(problems.to_string().lines().map(str::to_owned));
                outcome
            }
        }
    }

    /// Counts a reply without news.
    fn unchanged(&self, head: &Head) -> PollOutcome {
        let successes = (head.problem != 0)
            .then(|| self.line("the last problem is solved", &self.active_rules()));
        let successes = successes.into_iter().collect();
        PollOutcome { count: Some(Metric::RemoteFetched), successes, ..PollOutcome::default() }
    }

    /// Counts a problem, and logs it if it is new.
    fn problem(&self, count: Metric, what: &str, head: &Head, next: &Head) -> PollOutcome {
        let line = (head.problem != next.problem).then(|| self.line(what, &self.active_rules()));
        let failures = line.into_iter().collect();
        PollOutcome { count: Some(count), failures, ..PollOutcome::default() }
    }

    fn active_rules(&self) -> String {
        match self.version {
            0 => "the gateway's own rules stay active".into(),
            version => format!("version {version:016x} stays active"),
        }
    }
}

/// Writes a document to shared data. Returns true if no other worker has written at the same time.
fn write(key: &str, value: &[u8], access: &Access<'_>) -> bool {
    let number = access.data.get(key).map(|(_, number)| number);
    access.data.swap(key, value, number)
}
