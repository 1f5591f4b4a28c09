//! Sends batches and probes.

use super::batch::{Attempt, Batch};
use super::{Client, SHORTEST};
use crate::breaker::Breaker;
use crate::health::Health;
use crate::outbox::{Operation, Outbox};
use crate::protocol::{CallNumber, Failure, Pipeline, Script, ScriptCall};
use crate::shard::{Shard, Shards};
use diana_policy::port::{Callout, Destination};
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::replies::QuestionResult;

/// The maximum number of questions in a batch. Redis is blocked while it evaluates them.
const MOST: usize = 256;

/// Questions of a batch reserved for operations, so that many requests do not delay them.
const OPERATIONS: usize = MOST / 4;

/// The maximum number of pending batches, and where Redis is far away. A further batch is sent when
/// it is full, or when its oldest ask has waited for some time.
const BATCHES: usize = 4;
const FAR_BATCHES: usize = 32;

/// After so many late replies in a row no call is sent again for being late: with second attempts a
/// Redis at its limit would fall behind for good. One may be a worker's own delay.
const LATE_REPLIES: u32 = 2;

/// How long a worker sends no heartbeat after one failed.
const SILENCE: Micros = 5 * SECOND;

/// The maximum number of pending probes. Each probes one shard, so that a shard without a reply
/// does not delay the others.
const PROBES: usize = 16;

impl Client {
    /// Sends all batches that may be pending at the same time.
    pub(super) fn send_all(&mut self, now: Now, callout: &dyn Callout, outbox: &mut Outbox) {
        if !self.is_agreed() {
            return self.send_first(now, callout, outbox);
        }
        while self.may_send(now.mono, outbox) {
            let waited = self.waited(now.mono);
            let timeout = self.endpoint.timeout.saturating_sub(waited);
            let mut batch = self.new_batch(now.mono.saturating_add(timeout));
            for (shard, settles, charges) in outbox.ledgers.take(&outbox.unavailable, now.mono) {
                batch.add_settlements(shard, settles, charges);
            }
            batch.add_operations(outbox.take(OPERATIONS), outbox.shards);
            while batch.questions < MOST
                && let Some(wait) = self.waiting.pop_front()
            {
                batch.add_ask(wait.shard, wait.ask);
            }
            batch.add_operations(outbox.take(MOST.saturating_sub(batch.questions)), outbox.shards);
            let is_due = self.health.is_beat_due(now.mono) && !outbox.is_unavailable(Shard::FIRST);
            if is_due && !batch.has_call_to(Shard::FIRST) {
                batch.add_empty(Shard::FIRST);
            }
            self.send(batch, now, callout, outbox);
        }
    }

    /// Returns true if another batch should be sent now, although others may be pending.
    fn may_send(&self, now: Micros, outbox: &Outbox) -> bool {
        let pause = self.pause();
        let is_long = self.waited(now) >= pause;
        let is_near = pause >= self.endpoint.timeout / BATCHES as u64;
        let most = if is_near { BATCHES } else { FAR_BATCHES };
        // Probes and heartbeats do not count: no request waits for them.
        match self.batches.iter().filter(|batch| !batch.probing && !batch.is_beat).count() {
            0 => !self.waiting.is_empty() || outbox.due(now) == Some(now),
            pending if pending >= most => false,
            pending if pending < BATCHES && self.waiting.len() >= MOST => true,
            _ => !self.waiting.is_empty() && is_long,
        }
    }

    /// How long an ask waits while other batches are pending: at most for a quarter of the timeout,
    /// and less if a slow reply takes more than that, since later ones may be slower; but not where
    /// Redis is only busy, since more calls would make it slower.
    fn pause(&self) -> Micros {
        let timeout = self.endpoint.timeout;
        let slow = self.slow_trip.unwrap_or(timeout);
        let most = timeout / BATCHES as u64;
        if self.is_busy(slow) { most } else { (timeout / 2).saturating_sub(slow).min(most) }
    }

    /// Ticks for which the oldest ask has waited.
    pub(super) fn waited(&self, now: Micros) -> Micros {
        self.waiting.front().map_or(0, |wait| now.saturating_sub(wait.since))
    }

    /// Gets the seed of the callers' hashes from the first shard, before any call to another one.
    fn send_first(&mut self, now: Now, callout: &dyn Callout, outbox: &mut Outbox) {
        let wanted = !self.waiting.is_empty() || outbox.has_operations();
        if wanted && self.batches.is_empty() && !outbox.is_unavailable(Shard::FIRST) {
            let mut batch = self.new_batch(now.mono.saturating_add(self.endpoint.timeout));
            // With the script's text, since requests also wait for their own call: a missing script
            // would cost them a third one.
            let (shard, script, asks) = (Shard::FIRST, Script::Text, Vec::new());
            batch.add(ScriptCall { shard, script, asks, settles: None });
            self.send(batch, now, callout, outbox);
        }
    }

    /// The instant of the next heartbeat, unless another worker calls the first shard before.
    pub(super) fn beat(&self, now: Micros, outbox: &Outbox) -> Option<Micros> {
        let at = self.health.beat().max(self.silent_until).max(now);
        self.may_beat(outbox).then_some(at)
    }

    /// Tells Redis that this gateway is alive, if that is due: without requests, too, since the
    /// others must know how many gateways there are.
    pub(super) fn send_beat(&mut self, now: Now, callout: &dyn Callout, outbox: &mut Outbox) {
        let may = self.may_beat(outbox) && now.mono >= self.silent_until;
        if may && self.take_beat(now.mono, now.mono, outbox) {
            let mut batch = self.new_batch(now.mono.saturating_add(self.endpoint.timeout));
            batch.is_beat = true;
            batch.add_empty(Shard::FIRST);
            self.send(batch, now, callout, outbox);
        }
    }

    /// Returns true if this worker sends heartbeats. Its probes are heartbeats, too.
    fn may_beat(&self, outbox: &Outbox) -> bool {
        outbox.beats && !(outbox.in_use && outbox.is_unavailable(Shard::FIRST))
    }

    /// Reserves the heartbeat, if it is due by `at`. Returns true if it was.
    fn take_beat(&mut self, now: Micros, at: Micros, outbox: &mut Outbox) -> bool {
        let mut takes = false;
        if self.health.is_beat_due(at) {
            let health = Health::update(&*self.data, &self.key, now, |health| {
                takes = health.take_beat(at);
                takes
            });
            self.follow(health, outbox);
        }
        takes
    }

    /// Records that the heartbeat failed, where no request needs Redis.
    pub(super) fn miss_beat(&mut self, now: Micros, outbox: &mut Outbox) {
        self.silent_until = now.saturating_add(SILENCE);
        let health = Health::update(&*self.data, &self.key, now, Health::miss);
        self.follow(health, outbox);
    }

    /// The instant of the next probe.
    pub(super) fn probe(&self, now: Micros, outbox: &Outbox) -> Option<Micros> {
        // Settlements wait for Redis even if no request does.
        let wanted = outbox.in_use || outbox.ledgers.is_any();
        let can = wanted && self.probes() < PROBES;
        self.open().filter_map(|(_, breaker)| breaker.probe(now)).min().filter(|_| can)
    }

    /// The unavailable shards and their breakers.
    pub(super) fn open(&self) -> impl Iterator<Item = (Shard, Breaker)> + use<'_> {
        let shards = self.endpoint.shards.number();
        self.health.open().filter(move |(shard, _)| shard.number() < shards).copied()
    }

    /// The number of pending probes.
    fn probes(&self) -> usize {
        self.batches.iter().filter(|batch| batch.probing).count()
    }

    /// Probes unavailable shards, unless another worker has reserved the probe.
    pub(super) fn send_probes(&mut self, now: Now, callout: &dyn Callout, outbox: &mut Outbox) {
        while let Some(shard) = self.probed(now.mono, outbox) {
            let mut takes = false;
            let health = Health::update(&*self.data, &self.key, now.mono, |health| {
                takes = false;
                health.change(shard, |breaker| {
                    takes = breaker.take_probe(now.mono);
                    takes
                })
            });
            self.follow(health, outbox);
            if takes {
                let mut probe = self.new_batch(now.mono.saturating_add(self.endpoint.timeout));
                probe.probing = true;
                match self.open().any(|(it, breaker)| it == shard && breaker.is_half_open()) {
                    true => probe.add_unread(shard, outbox.rehearsal(shard)),
                    false => probe.add_empty(shard),
                }
                self.send(probe, now, callout, outbox);
            }
        }
    }

    /// The shard to probe now.
    fn probed(&self, now: Micros, outbox: &Outbox) -> Option<Shard> {
        self.probe(now, outbox).filter(|probe| *probe <= now)?;
        let is_due = |breaker: &Breaker| breaker.probe(now).is_some_and(|probe| probe <= now);
        self.open().find(|(_, breaker)| is_due(breaker)).map(|(shard, _)| shard)
    }

    /// A batch without calls, whose asks must have a result at `ends_at`.
    fn new_batch(&self, ends_at: Micros) -> Batch {
        let (tags, seed, gateway) = (self.tags.clone(), self.seed, self.gateway);
        let (wall, now, number, calls, rules, ordinal) = (0, None, None, Vec::new(), None, None);
        Batch::new(
            Pipeline { tags, seed, gateway, wall, now, number, calls, rules, ordinal },
            ends_at,
        )
    }

    /// When a batch is sent again if there is no reply: after half of its time, unless Redis is too
    /// far away for that, or its latest replies were late. With several shards, a proxy must have the
    /// time to report the one that does not reply: only the calls to that one are then sent again.
    fn second_at(&self, batch: &Batch, now: Micros) -> Option<Micros> {
        let half = batch.ends_at.saturating_sub(now) / 2;
        let is_near = self.round_trip.is_some_and(|trip| trip <= half);
        let is_one = self.endpoint.shards == Shards::ONE;
        let is_prompt = self.busy_replies.max(self.far_replies) < LATE_REPLIES;
        (is_one && is_near && is_prompt && batch.can_repeat(now)).then(|| now.saturating_add(half))
    }

    /// Sends the batches again that have had no reply for half of their time.
    pub(super) fn send_second(&mut self, now: Now, callout: &dyn Callout, outbox: &mut Outbox) {
        let is_due = |batch: &Batch| batch.second_at.is_some_and(|at| at <= now.mono);
        while let Some(index) = self.batches.iter().position(is_due) {
            let mut batch = self.batches.swap_remove(index);
            (batch.is_second, batch.second_at) = (true, None);
            self.send(batch, now, callout, outbox);
        }
    }

    /// Numbers the next batch of requests and operations. Its slot is free.
    fn next_number(&mut self) -> CallNumber {
        self.number += 1;
        let pending = || self.batches.iter().chain(&self.resends);
        let numbers = pending().filter_map(|batch| batch.pipeline.number);
        let is_free = |slot: &usize| !numbers.clone().any(|number| number.slot == *slot);
        let slot = (0..).find(is_free).unwrap_or_default();
        CallNumber { sender: self.sender, slot, number: self.number }
    }

    /// Sends a batch.
    pub(super) fn send(
        &mut self,
        mut batch: Batch,
        now: Now,
        callout: &dyn Callout,
        outbox: &mut Outbox,
    ) {
        // The same bytes as before if it is sent again.
        if !batch.is_second {
            batch.sent = now;
            batch.second_at = self.second_at(&batch, now.mono);
            batch.pipeline.wall = now.wall;
            // A missing script would cost the first requests a second round trip.
            if !self.has_script && self.endpoint.shards == Shards::ONE {
                batch.pipeline.calls.iter_mut().for_each(|call| call.script = Script::Text);
            }
            let calls_first = batch.has_call_to(Shard::FIRST);
            batch.pipeline.rules = calls_first.then(|| self.reported_rules(now.mono)).flatten();
            let ordinal = calls_first.then(|| self.next_ordinal(now.mono)).flatten();
            batch.pipeline.ordinal = ordinal.map(|(ordinal, _)| ordinal);
            batch.confirmed = ordinal.map_or(0, |(_, confirmed)| confirmed);
            if batch.pipeline.number.is_none() && !batch.probing && !batch.is_beat {
                batch.pipeline.number = Some(self.next_number());
            }
        }
        let timeout = batch.ends_at.saturating_sub(now.mono).max(SHORTEST);
        if batch.has_call_to(Shard::FIRST) && !batch.is_beat {
            self.take_beat(now.mono, Health::spared_until(now.mono), outbox);
        }
        self.counts.calls += 1;
        self.counts.asks += batch.asks();
        let destination = self.endpoint.destination.clone();
        let headers = match &destination {
            Destination::Cluster(name) => {
                let pseudo = [(":method", "POST"), (":path", "/"), (":authority", name)];
                pseudo.map(|(name, value)| (name.into(), value.into())).into()
            }
            Destination::Pipe(_) => Vec::new(),
        };
        let call = diana_policy::port::Call {
            destination,
            headers,
            body: batch.pipeline.encode(&self.endpoint.login),
            timeout,
        };
        match callout.send(&call) {
            Ok(token) => {
                let (caller, sent) = (callout.caller(), now.mono);
                batch.attempts.push(Attempt { token, caller, sent, timeout });
                self.batches.push(batch);
            }
            Err(_) if !batch.attempts.is_empty() => self.batches.push(batch),
            Err(why) => self.fail_all(batch, &Failure::Other(why.into()), now.mono, outbox),
        }
    }

    /// Drops the calls of a root that has ended: the host will not deliver their replies. This is
    /// no failure of Redis.
    pub fn on_root_ended(&mut self, caller: u32, outbox: &mut Outbox) {
        let is_lost = |batch: &mut Batch| {
            batch.attempts.retain(|attempt| attempt.caller != caller);
            batch.attempts.is_empty()
        };
        let lost: Vec<Batch> = self.batches.extract_if(.., is_lost).collect();
        for call in lost.into_iter().flat_map(|mut batch| batch.take()) {
            on_batch_end(&call, false, outbox);
            if !call.asks.is_empty() {
                self.counts.fail("lost");
            }
            outbox.results.add_all(call.asks, QuestionResult::Repeat);
        }
    }

    /// Drops all waiting asks, operations and settlements. The asks have this result.
    pub(super) fn drop_all(&mut self, result: QuestionResult, outbox: &mut Outbox) {
        outbox.ledgers.clear();
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|wait| wait.ask);
        let operations = outbox.take(usize::MAX).into_iter().map(Operation::ask);
        outbox.results.add_all(waiting.chain(operations), result);
    }

    /// Drops the questions that have not left: they were asked before an outage was known, and lack
    /// the arrears of their callers.
    pub(super) fn ask_again(&mut self, outbox: &mut Outbox) {
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|wait| wait.ask);
        let renewals = outbox.take_renewals().into_iter().map(Operation::ask);
        outbox.results.add_all(waiting.chain(renewals), QuestionResult::Repeat);
    }

    /// Drops the asks and operations for unavailable shards.
    pub(super) fn drop_unavailable(&mut self, outbox: &mut Outbox) {
        let mut dropped = Vec::new();
        for wait in std::mem::take(&mut self.waiting) {
            match outbox.is_unavailable(wait.shard) {
                true => dropped.push(wait.ask),
                false => self.waiting.push_back(wait),
            }
        }
        dropped.extend(outbox.take_unavailable().into_iter().map(Operation::ask));
        outbox.results.add_all(dropped, QuestionResult::Degraded);
    }
}

/// Passes on whether the settlements of a call were applied.
pub(super) fn on_batch_end(call: &ScriptCall, taken: bool, outbox: &mut Outbox) {
    if let Some(settles) = call.settles {
        outbox.ledgers.on_batch_end(call.shard, settles, taken);
    }
}
