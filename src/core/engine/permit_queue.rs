//! Requests that wait for permits which others hold, and which may come back.
//!
//! Such a request has been charged nowhere. Those of one caller under one rule stand in a queue: from time to
//! time the first of them is decided about anew, and as soon as one of them is decided the next one is, too.
//! None waits longer than its time, so nobody has to tell this worker that permits came back. All that is
//! asked again is asked at instants [`RECHECK`] apart, so that it shares a call.

use std::collections::{BTreeMap, VecDeque};

use super::opinion::{Refused, Says};
use super::{Engine, Resumed, Scratch};
use crate::decision::Retry;
use crate::key::Key;
use crate::store::lease::RECHECK;
use crate::time::{Micros, Now, SECOND};

/// How long a request waits in all.
pub(super) const LONGEST: Micros = SECOND / 5;

/// Requests of one caller under one rule that wait at most.
const MOST: usize = 64;

/// Queues at most.
const QUEUES: usize = 1024;

/// Tickets of these requests have this bit, those of requests that wait for Redis have not.
const TICKETS: u64 = 1 << 63;

/// For whose permits a request waits, and until when at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    rule: usize,
    key: Key,
    /// Since when it waits for a decision.
    pub(super) since: Micros,
    pub(super) until: Micros,
}

/// A request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) ticket: u64,
    since: Micros,
    until: Micros,
}

/// The requests of one caller under one rule, those first that came first.
#[derive(Debug)]
struct Queue {
    rule: usize,
    key: Key,
    requests: VecDeque<Waiting>,
    /// When the first of them is decided about anew.
    due: Micros,
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(super) struct PermitQueues {
    queues: Vec<Queue>,
    /// In whose queue each request stands.
    places: BTreeMap<u64, (usize, Key)>,
    tickets: u64,
}

/// The latest instant up to `instant` at which something is asked again.
fn grid(instant: Micros) -> Micros {
    instant - instant % RECHECK
}

/// The same for what is asked for the last time.
fn fine_grid(instant: Micros) -> Micros {
    instant - instant % (RECHECK / 4)
}

impl Queue {
    fn next(&self) -> Option<Micros> {
        Some(self.requests.front()?.until.min(self.due))
    }
}

impl PermitQueues {
    /// Lets a request wait that has come at `since` and was decided about at `now`: in front of the others
    /// if it has waited before, with the `patience` that it has left. Its ticket; nothing if too many wait that have come
    /// before it.
    pub(super) fn join(
        &mut self,
        (rule, key): (usize, Key),
        patience: Option<Patience>,
        since: Micros,
        now: Micros,
    ) -> Option<u64> {
        let is_full = self.queues.len() >= QUEUES;
        let queue = match self.find(rule, key) {
            Some(place) => self.queues.get_mut(place)?,
            None if is_full && patience.is_none() => return None,
            None => {
                self.queues.push(Queue { rule, key, requests: VecDeque::new(), due: 0 });
                self.queues.last_mut()?
            }
        };
        if queue.requests.len() >= MOST && patience.is_none() {
            return None;
        }
        self.tickets += 1;
        let ticket = TICKETS | self.tickets;
        let longest = || fine_grid(now.saturating_add(LONGEST));
        let until = patience.map_or_else(longest, |patience| patience.until);
        let since = patience.map_or(since, |patience| patience.since);
        let place = queue.requests.partition_point(|waiting| waiting.until <= until);
        queue.requests.insert(place, Waiting { ticket, since, until });
        queue.due = grid(now.saturating_add(RECHECK));
        self.places.insert(ticket, (rule, key));
        Some(ticket)
    }

    /// When the next request is to be decided about anew.
    pub(super) fn next(&self) -> Option<Micros> {
        self.queues.iter().filter_map(Queue::next).min()
    }

    /// A request that is to be decided about anew by `now`; it does not wait any more.
    pub(super) fn take(&mut self, now: Micros) -> Option<(Waiting, Patience)> {
        let place =
            self.queues.iter().position(|queue| queue.next().is_some_and(|next| next <= now))?;
        let queue = self.queues.get_mut(place)?;
        let waiting = queue.requests.pop_front()?;
        self.places.remove(&waiting.ticket);
        let Waiting { since, until, .. } = waiting;
        let patience = Patience { rule: queue.rule, key: queue.key, since, until };
        queue.due = grid(now.saturating_add(RECHECK));
        if queue.requests.is_empty() {
            self.queues.swap_remove(place);
        }
        Some((waiting, patience))
    }

    /// How many requests of a caller wait.
    fn waiting(&self, rule: usize, key: Key) -> usize {
        let queue = self.find(rule, key).and_then(|place| self.queues.get(place));
        queue.map_or(0, |queue| queue.requests.len())
    }

    /// Something became known about the caller: the next of its requests need not wait.
    pub(super) fn wake(&mut self, rule: usize, key: Key) {
        let queue = self.find(rule, key).and_then(|place| self.queues.get_mut(place));
        queue.into_iter().for_each(|queue| queue.due = 0);
    }

    /// Forgets a request whose client left, if it waits here.
    pub(super) fn leave(&mut self, ticket: u64) {
        let Some((rule, key)) = self.places.remove(&ticket) else { return };
        let Some(place) = self.find(rule, key) else { return };
        let Some(queue) = self.queues.get_mut(place) else { return };
        queue.requests.retain(|waiting| waiting.ticket != ticket);
        if queue.requests.is_empty() {
            self.queues.swap_remove(place);
        }
    }

    fn find(&self, rule: usize, key: Key) -> Option<usize> {
        self.queues.iter().position(|queue| queue.rule == rule && queue.key == key)
    }
}

impl Engine {
    /// Lets the request in hand wait if nothing refuses it but that others hold the permits that it needs.
    /// Its ticket; nothing if it is refused.
    pub(super) fn wait_for_permits(&mut self) -> Option<u64> {
        let refused = || self.scratch.opinions.iter().filter(|opinion| opinion.is_refusal());
        if refused().any(|opinion| opinion.loan() == 0) {
            return None;
        }
        let place = refused().next().map(|opinion| (opinion.rule, opinion.key))?;
        let Scratch { now: Now { mono: now, .. }, since, patience, .. } = self.scratch;
        if patience.is_none_or(|patience| now < patience.until) {
            let ticket = self.permit_queues.join(place, patience, since, now);
            if let (Some(_), Some(judge)) = (ticket, self.rules.get_mut(place.0)) {
                judge.counts.waited_for_permits += u64::from(patience.is_none());
                self.tell_waiting(place);
                return ticket;
            }
            self.crowd(place);
        }
        // The loan is shorter than what is outstanding may be missing for, and the caller has used nothing up.
        for opinion in self.scratch.opinions.iter_mut().filter(|opinion| !opinion.shadow) {
            if let Says::Refuses(Refused { retry, loan, counts, .. }) = &mut opinion.says {
                (*retry, *counts) = (Retry::After(*loan), false);
            }
        }
        None
    }

    /// Tells a store how many of a caller's requests wait.
    fn tell_waiting(&mut self, (rule, key): (usize, Key)) {
        let waiting = self.permit_queues.waiting(rule, key);
        if let Some(judge) = self.rules.get_mut(rule) {
            judge.store.any().wait(key, waiting);
        }
    }

    /// The request in hand is decided: if it has waited for permits, the next one that does has its turn.
    pub(super) fn end_wait(&mut self) {
        if let Some(patience) = self.scratch.patience.take() {
            self.permit_queues.wake(patience.rule, patience.key);
            self.tell_waiting((patience.rule, patience.key));
        }
    }

    fn crowd(&mut self, (rule, key): (usize, Key)) {
        if let Some(judge) = self.rules.get_mut(rule) {
            judge.store.any().crowd(key, self.scratch.now);
        }
    }

    /// A request that has waited as long as it may is not decided about by what was known a while ago.
    pub(super) fn look_again(&mut self, now: Micros) {
        if let Some(Patience { rule, key, until, .. }) = self.scratch.patience
            && now >= until
            && let Some(judge) = self.rules.get_mut(rule)
        {
            judge.store.any().look_again(key);
        }
    }

    /// The requests that are to be decided about anew.
    pub(super) fn take_waiting(&mut self, now: Now, requests: &mut Vec<Resumed>) {
        while let Some((Waiting { ticket, .. }, patience)) = self.permit_queues.take(now.mono) {
            let (since, patience) = (patience.since, Some(patience));
            requests.push(Resumed { ticket, since, patience, answer: None });
        }
    }
}
