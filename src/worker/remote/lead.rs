//! The election of the polling worker, and its calls.

use super::document::Unusable;
use super::head::Head;
use super::in_force::InForce;
use super::{Access, PendingPoll, PollOutcome, Poller, Tag, call};
use diana_policy::time::{Micros, SECOND};

/// Length of the leader's lease since it last read the state.
pub const LEASE: Micros = SECOND;

/// Time after its timeout after which a call is abandoned. The host normally always replies.
const GRACE: Micros = SECOND;

/// Delay before the retry of a call that the host could not make, for example during its start. The
/// server does not see such calls.
const RETRY: Micros = SECOND;

impl Poller {
    /// Becomes or remains the leader, unless another worker is. A worker with a later configuration
    /// and other settings takes over at once, since the other configuration is being replaced.
    pub(super) fn lead(&self, head: &mut Head, number: Option<u32>, access: &Access<'_>) -> bool {
        if head.leader != self.id {
            let differs = head.settings != self.settings;
            // A longer lease is damaged.
            let is_led = (access.now..access.now + 2 * LEASE).contains(&head.until);
            if is_led && !(differs && head.configured_at < self.configured_at) {
                return false;
            }
            if differs {
                (head.due, head.rejected) = (0, 0);
            }
            (head.leader, head.configured_at, head.settings) =
                (self.id, self.configured_at, self.settings);
        }
        head.until = access.now + LEASE;
        head.write(access.data, &self.head, number)
    }

    /// Polls the server, if that is due.
    pub(super) fn poll(
        &mut self,
        head: &Head,
        in_force: &InForce,
        access: &Access<'_>,
    ) -> PollOutcome {
        let is_scheduled = (access.now + 1..=access.now + self.remote.every).contains(&head.due);
        match self.pending {
            Some(PendingPoll { sent, .. }) if access.now > sent + self.call.timeout + GRACE => {
                self.pending = None;
                let lost = Unusable::Failed("no response arrived".into());
                let due = self.due(sent, Some(&lost), access.now);
                return self.conclude(Err(lost), due, access);
            }
            Some(_) => {}
            None if !is_scheduled => match self.send(head, in_force, access) {
                Ok(call) => self.pending = Some(call),
                Err(why) => {
                    let unsent = Unusable::Failed(why.into());
                    let due = match self.is_new(access.now) {
                        true => self.due(access.now, Some(&unsent), access.now),
                        false => access.now + RETRY,
                    };
                    return self.conclude(Err(unsent), due, access);
                }
            },
            None => self.next = self.next.min(head.due),
        }
        PollOutcome::default()
    }

    /// Sends a request. If the document in force has a tag, the server need not send it again.
    fn send(
        &self,
        head: &Head,
        in_force: &InForce,
        access: &Access<'_>,
    ) -> Result<PendingPoll, &'static str> {
        let mut call = self.call.clone();
        let version = in_force.version(head.version, access.now);
        call.headers.push(call::document(version, head.rejected));
        let is_newest = |tag: &&Tag| [self.version, head.version] == [tag.version; 2];
        let tag = self.tag.as_ref().filter(is_newest);
        if let Some(tag) = tag {
            call.headers.push(("if-none-match".into(), tag.value.clone()));
        }
        let tagged = tag.map_or(0, |tag| tag.version);
        let token = access.callout.send(&call)?;
        Ok(PendingPoll { token, sent: access.now, tagged })
    }
}
