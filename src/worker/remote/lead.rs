//! Who asks the configuration centre, and when.

use super::document::Unusable;
use super::head::Head;
use super::{Access, Outcome, Poller, Waiting};
use diana_policy::time::{Micros, SECOND};

/// How long a leader is taken to live since it last looked.
pub const LEASE: Micros = SECOND;

/// How long after its timeout a call is given up; the host always gives an answer.
const GRACE: Micros = SECOND;

/// When a call is tried again that could not be made, as while the host is starting. That costs the
/// centre nothing.
const RETRY: Micros = SECOND;

impl Poller {
    /// Becomes or stays the leader, if nobody else is. Who was configured later and asks in another
    /// way takes over at once: the other belongs to a configuration that is being replaced.
    pub(super) fn lead(&self, head: &mut Head, number: Option<u32>, access: &Access<'_>) -> bool {
        if head.leader != self.id {
            let differs = head.settings != self.settings;
            // A lease that is too long is damaged.
            let lives = (access.now..access.now + 2 * LEASE).contains(&head.until);
            if lives && !(differs && head.born < self.born) {
                return false;
            }
            if differs {
                (head.due, head.rejected) = (0, 0);
            }
            (head.leader, head.born, head.settings) = (self.id, self.born, self.settings);
        }
        head.until = access.now + LEASE;
        head.write(access.data, &self.head, number)
    }

    /// Asks if it is time.
    pub(super) fn ask(&mut self, head: &Head, access: &Access<'_>) -> Outcome {
        let waits = (access.now + 1..=access.now + self.remote.every).contains(&head.due);
        match self.waiting {
            Some(Waiting { sent, .. }) if access.now > sent + self.call.timeout + GRACE => {
                self.waiting = None;
                let due = sent + self.remote.every;
                return self.conclude(Err(Unusable::Failed("no answer came".into())), due, access);
            }
            Some(_) => {}
            None if !waits => match access.callout.send(&self.call) {
                Ok(token) => self.waiting = Some(Waiting { token, sent: access.now }),
                Err(why) => {
                    return self.conclude(
                        Err(Unusable::Failed(why.into())),
                        access.now + RETRY,
                        access,
                    );
                }
            },
            None => self.next = self.next.min(head.due),
        }
        Outcome::default()
    }
}
