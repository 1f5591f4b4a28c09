//! Requests that come once more, since the host has followed a redirect of the upstream itself: what was reserved for the
//! first one is taken over, and only rules judge that had nothing to do with it.
//!
//! The host has the second one come as soon as the stream of the first one has ended, before any other request of this
//! worker, unless a filter in front holds it up. Then, or if it never comes, the first one used nothing.

use super::opinion::{Basis, Says};
use super::{Engine, Judge, Since};
use crate::permit::{Permit, Unsettled};
use crate::port::{Clock, Ending, Property, Request};
use crate::settling::Heard;
use crate::verdict::Verdict;

/// What was reserved for a request whose response the host follows.
pub(super) struct Followed {
    /// The host's number of the connection that it came by.
    connection: Box<[u8]>,
    permit: Permit,
}

/// The host's number of a connection.
fn connection() -> Property {
    Property::new(&["connection", "id"])
}

impl Engine {
    /// Keeps what was reserved for a request whose response the host follows, until that comes.
    pub(super) fn follow(&mut self, permit: Permit, ending: &dyn Ending) {
        // Without a number there is nothing to tell it by, and it is given back.
        let known = ending.property(&connection());
        let followed = known.map(|it| it.as_ref().into());
        let Some(connection) = followed else { return self.used_nothing(permit) };
        if let Some(other) = self.followed.replace(Followed { connection, permit }) {
            self.used_nothing(other.permit);
        }
    }

    /// Whether it keeps what was reserved for this request, which comes once more.
    #[must_use]
    pub fn follows(&self, request: &dyn Request) -> bool {
        let Some(Followed { connection: by, .. }) = &self.followed else { return false };
        request.property(&connection()).as_deref() == Some(&**by)
    }

    /// Takes back what requests no longer need, but for what was reserved for the one that comes once more.
    #[inline(never)]
    pub(super) fn take_over(&mut self, request: &dyn Request, clock: &dyn Clock) -> Option<Permit> {
        let is_it = self.follows(request);
        let kept = self.followed.take_if(|_| is_it).map(|followed| followed.permit);
        self.forget_followed();
        self.take_back(clock.now());
        kept
    }

    /// Gives back what was reserved for a request that has not come once more.
    pub(super) fn forget_followed(&mut self) {
        if let Some(Followed { permit, .. }) = self.followed.take() {
            self.used_nothing(permit);
        }
    }

    fn used_nothing(&mut self, permit: Permit) {
        permit.settle(|charge| {
            let judge = self.rules.get_mut(charge.rule as usize);
            judge.map_or(0, |judge| judge.uses_nothing(charge))
        });
    }

    /// Decides about a request that comes once more.
    #[inline(never)]
    pub(super) fn decide_followed(
        &mut self,
        kept: Permit,
        since: Since,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Verdict {
        self.gather(since, request);
        self.keep(kept);
        let verdict = self.decide_gathered(since, clock);
        if self.freed.is_any() {
            self.take_back(clock.now());
        }
        verdict
    }

    /// Has the rules that a request was charged by admit it as it comes once more. What is left is given back.
    fn keep(&mut self, mut kept: Permit) {
        for opinion in &mut self.scratch.opinions {
            if let Says::Nothing = opinion.says
                && let Some(mut charge) = kept.take_out(opinion.rule as u32, opinion.key)
            {
                // The other response is the one that says what it used.
                (charge.heard, charge.used) = (Heard::Nothing, 0);
                let permit = Permit::new(Vec::new(), vec![charge], &self.freed);
                opinion.says = Says::Admits { wait: 0, by: Basis::Kept(permit) };
            }
        }
        self.used_nothing(kept);
    }

    /// Keeps what was kept for the request in hand until it is decided about anew, under the ticket that it waits by.
    #[inline(never)]
    pub(super) fn keep_until(&mut self, ticket: u64) {
        let mut kept = Permit::NONE;
        for opinion in &mut self.scratch.opinions {
            if let Says::Admits { by: Basis::Kept(permit), .. } = &mut opinion.says {
                kept.append(std::mem::take(permit));
            }
        }
        if !kept.is_none() {
            self.kept.insert(ticket, kept);
        }
    }

    /// Gives back what was kept for a request whose client left while it waited.
    pub(super) fn keep_no_longer(&mut self, ticket: u64) {
        if let Some(permit) = self.kept.remove(ticket) {
            self.used_nothing(permit);
        }
    }
}

impl Judge {
    /// Counts a charge of which nothing was used, but for a place. What was used.
    pub(super) fn uses_nothing(&mut self, charge: &Unsettled) -> u64 {
        if self.settler.as_ref().is_some_and(|settler| !settler.is_place()) {
            self.counts.settle(charge.reserved.into(), 0, None);
        }
        0
    }
}
