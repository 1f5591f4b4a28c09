//! What goes out, and what becomes of those who wait for it.

use super::batch::{Batch, Wait, Who};
use super::{Client, Completion};
use crate::breaker::Breaker;
use crate::handle::{Handle, Operation};
use crate::health::Health;
use crate::part::Part;
use crate::pending::Settled;
use crate::protocol::{AskReply, Failure, Script, ScriptCall, Trip};
use crate::target::Target;
use diana_policy::port::Callout;
use diana_policy::time::{Micros, Now, SECOND};

/// Most questions in a batch: Redis does nothing else meanwhile.
const MOST: usize = 256;

/// How many of them are for operations, however many requests wait.
const OPERATIONS: usize = MOST / 4;

/// Batches that may be out at once: if Redis is far away, asks wait no longer than a part of the timeout
/// before they leave.
const BATCHES: usize = 4;

/// How often the first part hears of this gateway, whatever the others are asked.
const ALIVE: Micros = SECOND;

/// Most probes that are out at once: each asks about one part, since one that hangs would keep the others waiting.
const PROBES: usize = 16;

/// The shortest timeout that a host can tell.
const SHORTEST: Micros = SECOND / 1000;

impl Client {
    /// Sends as much as may be on its way at once.
    pub(super) fn send_all(&mut self, now: Now, callout: &dyn Callout, handle: &mut Handle) {
        if !self.is_agreed() {
            return self.send_first(now, callout, handle);
        }
        while self.may_send(now.mono, handle) {
            let waited = self.waited(now.mono);
            let timeout = self.endpoint.timeout.saturating_sub(waited).max(SHORTEST);
            let mut batch = Batch::new(self.trip(), timeout);
            for (part, settles, charges) in handle.ledgers.take(&handle.away, now.mono) {
                batch.add_settlements(part, settles, charges);
            }
            batch.add_operations(handle.take(OPERATIONS), handle.parts);
            while batch.questions < MOST
                && let Some(wait) = self.waiting.pop_front()
            {
                batch.add_request(wait);
            }
            batch.add_operations(handle.take(MOST.saturating_sub(batch.questions)), handle.parts);
            let asked = self.asked_first.is_some_and(|it| now.mono.saturating_sub(it) < ALIVE);
            if !asked && !handle.is_away(Part::FIRST) && !batch.asks_of(Part::FIRST) {
                batch.add_empty(Part::FIRST);
            }
            self.send(batch, now, callout, handle);
        }
    }

    /// Whether there is something to be sent that should not wait for the batches that are out.
    fn may_send(&self, now: Micros, handle: &Handle) -> bool {
        let long = self.waited(now) >= self.endpoint.timeout / BATCHES as u64;
        // A probe asks for nothing, and keeps nobody waiting.
        match self.batches.iter().filter(|batch| !batch.probing).count() {
            0 => !self.waiting.is_empty() || handle.has_operations(),
            BATCHES.. => false,
            _ => self.waiting.len() >= MOST || !self.waiting.is_empty() && long,
        }
    }

    /// How long the oldest ask has waited.
    pub(super) fn waited(&self, now: Micros) -> Micros {
        self.waiting.front().map_or(0, |wait| now.saturating_sub(wait.since))
    }

    /// Finds out by what callers are hashed before any other part is asked.
    fn send_first(&mut self, now: Now, callout: &dyn Callout, handle: &mut Handle) {
        let wanted = !self.waiting.is_empty() || handle.has_operations();
        if wanted && self.batches.is_empty() && !handle.is_away(Part::FIRST) {
            let mut batch = Batch::new(self.trip(), self.endpoint.timeout);
            // Requests wait for this trip and for their own, so it should be no more than one.
            let (part, script, asks) = (Part::FIRST, Script::Text, Vec::new());
            batch.add(ScriptCall { part, script, asks, settles: None }, Vec::new());
            self.send(batch, now, callout, handle);
        }
    }

    /// When the next part is to be probed.
    pub(super) fn probe(&self, now: Micros, handle: &Handle) -> Option<Micros> {
        // What is to be settled waits for Redis even if no request does.
        let wanted = handle.in_use || handle.ledgers.is_any();
        let can = wanted && self.probes() < PROBES;
        self.open().filter_map(|(_, breaker)| breaker.probe(now)).min().filter(|_| can)
    }

    /// The parts that cannot be relied upon, and their breakers.
    pub(super) fn open(&self) -> impl Iterator<Item = (Part, Breaker)> + use<'_> {
        let parts = self.endpoint.parts.number();
        self.health.open().filter(move |(part, _)| part.number() < parts).copied()
    }

    /// Probes that are out.
    fn probes(&self) -> usize {
        self.batches.iter().filter(|batch| batch.probing).count()
    }

    /// Finds out whether parts are back, unless another worker does.
    pub(super) fn send_probes(&mut self, now: Now, callout: &dyn Callout, handle: &mut Handle) {
        while let Some(part) = self.probed(now.mono, handle) {
            let mut takes = false;
            let health = Health::update(&*self.data, &self.key, now.mono, |health| {
                takes = false;
                health.change(part, |breaker| {
                    takes = breaker.take_probe(now.mono);
                    takes
                })
            });
            self.follow(health, handle);
            if takes {
                let mut probe = Batch::new(self.trip(), self.endpoint.timeout);
                probe.probing = true;
                probe.add_empty(part);
                self.send(probe, now, callout, handle);
            }
        }
    }

    /// The part that is to be probed now.
    fn probed(&self, now: Micros, handle: &Handle) -> Option<Part> {
        self.probe(now, handle).filter(|probe| *probe <= now)?;
        let is_due = |breaker: &Breaker| breaker.probe(now).is_some_and(|probe| probe <= now);
        self.open().find(|(_, breaker)| is_due(breaker)).map(|(part, _)| part)
    }

    /// A trip that asks nothing yet.
    fn trip(&self) -> Trip {
        let (tags, seed, gateway) = (self.tags.clone(), self.seed, self.gateway);
        Trip { tags, seed, gateway, wall: 0, now: None, calls: Vec::new() }
    }

    /// Sends a batch.
    fn send(&mut self, mut batch: Batch, now: Now, callout: &dyn Callout, handle: &mut Handle) {
        (batch.sent, batch.caller) = (now, callout.caller());
        batch.trip.wall = now.wall;
        if batch.asks_of(Part::FIRST) {
            self.asked_first = Some(now.mono);
        }
        self.stats.trips += 1;
        self.stats.asks += batch.asks();
        let cluster = &self.endpoint.cluster;
        let pseudo = [(":method", "POST"), (":path", "/"), (":authority", cluster)];
        let call = diana_policy::port::Call {
            cluster: cluster.clone(),
            headers: pseudo.map(|(name, value)| (name.into(), value.into())).into(),
            body: batch.trip.pipeline(&self.endpoint.login),
            timeout: batch.timeout,
        };
        match callout.send(&call) {
            Ok(token) => {
                batch.token = token;
                self.batches.push(batch);
            }
            Err(why) => self.fail_all(batch, &Failure::Other(why.into()), now.mono, handle),
        }
    }

    /// Sends a batch again, as long as its requests may wait.
    pub(super) fn send_again(
        &mut self,
        mut batch: Batch,
        now: Now,
        callout: &dyn Callout,
        handle: &mut Handle,
    ) {
        let elapsed = now.mono.saturating_sub(batch.sent.mono);
        batch.timeout = batch.timeout.saturating_sub(elapsed).max(SHORTEST);
        self.send(batch, now, callout, handle);
    }

    /// Whoever made calls has ended, and nobody will be told of their answers: that says nothing about Redis.
    pub fn lose(&mut self, caller: u32, handle: &mut Handle) -> Vec<Completion> {
        let lost: Vec<Batch> =
            self.batches.extract_if(.., |batch| batch.caller == caller).collect();
        for (call, who) in lost.into_iter().flat_map(|mut batch| batch.take()) {
            come_back(&call, false, handle);
            self.stats.fail("lost");
            self.settle_all(who, Settled::Again);
        }
        std::mem::take(&mut self.completed)
    }

    /// Asks for nothing of all that waits.
    pub(super) fn give_up_all(&mut self, settled: Settled, handle: &mut Handle) {
        handle.ledgers.clear();
        let waiting = std::mem::take(&mut self.waiting);
        self.give_up(waiting, handle.take(usize::MAX), settled);
    }

    /// Asks for nothing of what waits for parts that cannot be relied upon.
    pub(super) fn give_up_away(&mut self, handle: &mut Handle) {
        let mut away = Vec::new();
        for wait in std::mem::take(&mut self.waiting) {
            match handle.is_away(wait.part) {
                true => away.push(wait),
                false => self.waiting.push_back(wait),
            }
        }
        self.give_up(away, handle.take_away(), Settled::Alone);
    }

    fn give_up(
        &mut self,
        waiting: impl IntoIterator<Item = Wait>,
        operations: Vec<Operation>,
        settled: Settled,
    ) {
        for Wait { ticket, targets, .. } in waiting {
            targets.into_iter().for_each(|target| self.settle(ticket, target, settled));
        }
        for operation in operations {
            if let Some(target) = operation.target() {
                let caller = (operation.caller(), operation.plan());
                self.completed.push(Completion::Operation(target, caller, None));
            }
        }
    }

    /// Hands out what Redis decided at this instant.
    pub(super) fn hand_out(
        &mut self,
        who: Vec<Who>,
        outcomes: Vec<AskReply>,
        sent: Now,
        at: Micros,
    ) {
        for (who, AskReply { wait, replies }) in who.into_iter().zip(outcomes) {
            match who {
                Who::Request(ticket, targets) => {
                    for (target, reply) in targets.into_iter().zip(replies) {
                        self.settle(ticket, target, Settled::Decided { reply, wait, sent, at });
                    }
                }
                Who::Operation(target, caller, plan) => {
                    let reply = replies.first().map(|reply| (*reply, sent));
                    self.completed.push(Completion::Operation(target, (caller, plan), reply));
                }
                Who::Nobody => {}
            }
        }
    }

    /// Tells all for whom a call was that it came to nothing.
    pub(super) fn settle_all(&mut self, who: Vec<Who>, settled: Settled) {
        for who in who {
            match who {
                Who::Request(ticket, targets) => {
                    targets.into_iter().for_each(|target| self.settle(ticket, target, settled));
                }
                Who::Operation(target, caller, plan) => {
                    self.completed.push(Completion::Operation(target, (caller, plan), None));
                }
                Who::Nobody => {}
            }
        }
    }

    /// Notes what became of a question; with the last one its request is completed.
    fn settle(&mut self, ticket: u64, target: Target, settled: Settled) {
        let Some(pending) = self.pending.get_mut(&ticket) else { return };
        pending.settle(target, settled);
        if pending.is_complete()
            && let Some(pending) = self.pending.remove(&ticket)
        {
            self.completed.push(Completion::Request(ticket, pending));
        }
    }
}

/// What a call settles is known to have been taken, or has to be sent again.
pub(super) fn come_back(call: &ScriptCall, taken: bool, handle: &mut Handle) {
    if let Some(settles) = call.settles {
        handle.ledgers.come_back(call.part, settles, taken);
    }
}
