//! A batch: the calls of one host call.

use super::{GRACE, SHORTEST};
use crate::outbox::Operation;
use crate::protocol::{
    Ask, Charge, Effect, Failure, Login, Pipeline, Question, Script, ScriptAnswer, ScriptCall,
    SettlementBatch,
};
use crate::shard::{Shard, Shards};
use diana_policy::port;
use diana_policy::time::{Micros, Now};
use diana_store::Account;
use diana_store::backend::Receiver;

/// An ask of a request in one shard, not sent yet.
pub(super) struct Wait {
    pub(super) since: Micros,
    pub(super) shard: Shard,
    pub(super) ask: Ask,
}

/// A call of the host with a batch.
pub(super) struct Attempt {
    pub(super) token: u32,
    /// The root that made the call and receives the reply.
    pub(super) caller: u32,
    pub(super) sent: Micros,
    pub(super) timeout: Micros,
}

/// Calls that are sent together, in one call of the host or in two: the first reply counts, and
/// Redis decides them once.
pub(super) struct Batch {
    pub(super) pipeline: Pipeline,
    /// Whether it is a probe.
    pub(super) probing: bool,
    /// When it was first sent.
    pub(super) sent: Now,
    /// The highest ordinal that a reply had confirmed before, if it has one.
    pub(super) confirmed: u64,
    /// The attempts without a reply.
    pub(super) attempts: Vec<Attempt>,
    /// When it is sent again if there is no reply.
    pub(super) second_at: Option<Micros>,
    /// When its asks must have a result.
    pub(super) ends_at: Micros,
    /// Whether it is sent for the second time.
    pub(super) is_second: bool,
    /// Whether it is only a heartbeat of the gateway.
    pub(super) is_beat: bool,
    /// The number of questions of all calls.
    pub(super) questions: usize,
}

impl Batch {
    /// A batch without calls, whose asks must have a result at `ends_at`.
    pub(super) fn new(pipeline: Pipeline, ends_at: Micros) -> Batch {
        Batch {
            pipeline,
            probing: false,
            sent: Now::default(),
            confirmed: 0,
            attempts: Vec::new(),
            second_at: None,
            ends_at,
            is_second: false,
            is_beat: false,
            questions: 0,
        }
    }

    /// The instant at which it fails without a reply.
    pub(super) fn expires_at(&self) -> Micros {
        self.ends_at.max(self.sent.mono.saturating_add(SHORTEST)).saturating_add(GRACE)
    }

    /// The number of asks of all calls.
    pub(super) fn asks(&self) -> u64 {
        self.pipeline.calls.iter().map(|call| call.asks.len() as u64).sum()
    }

    /// The result of each call, by the end of an attempt.
    pub(super) fn read(
        &self,
        attempt: &Attempt,
        login: &Login,
        answer: &port::Answer<'_>,
        now: Micros,
    ) -> Vec<Result<ScriptAnswer, Failure>> {
        // The host's timeout starts at its latest read of the clock, which on a busy worker is long
        // before the call: 20 ms have ended after 7 ms. The host reports a timeout and a reset
        // connection alike.
        let early = now.saturating_sub(attempt.sent) < attempt.timeout / 4;
        let failure = match answer.status {
            None if early => Failure::Reset,
            None | Some(504) => Failure::Timeout,
            Some(503) => Failure::Unreachable,
            Some(200) if answer.size == 0 => Failure::Reset,
            Some(200) => return self.pipeline.answers(login, &(answer.body)().unwrap_or_default()),
            Some(_) => Failure::Garbage,
        };
        self.pipeline.all(&failure)
    }

    /// Removes the attempt with this token.
    pub(super) fn take_attempt(&mut self, token: u32) -> Option<Attempt> {
        let index = self.attempts.iter().position(|attempt| attempt.token == token)?;
        Some(self.attempts.swap_remove(index))
    }

    /// Returns true if its lost calls can be sent again in time. Probes are repeated anyway.
    pub(super) fn can_repeat(&self, now: Micros) -> bool {
        !self.is_second && !self.probing && self.ends_at >= now.saturating_add(SHORTEST)
    }

    /// A batch without calls, to send some of its calls again.
    pub(super) fn again(&self) -> Batch {
        let pipeline = Pipeline { calls: Vec::new(), ..self.pipeline.clone() };
        Batch {
            probing: self.probing,
            is_second: self.is_second,
            is_beat: self.is_beat,
            sent: self.sent,
            confirmed: self.confirmed,
            ..Batch::new(pipeline, self.ends_at)
        }
    }

    /// Removes its calls.
    pub(super) fn take(&mut self) -> Vec<ScriptCall> {
        std::mem::take(&mut self.pipeline.calls)
    }

    /// Adds a call.
    pub(super) fn add(&mut self, call: ScriptCall) {
        self.questions += call.asks.iter().map(|ask| ask.questions.len()).sum::<usize>();
        self.pipeline.calls.push(call);
    }

    /// Returns true if it has calls.
    pub(super) fn has_calls(&self) -> bool {
        !self.pipeline.calls.is_empty()
    }

    /// Returns true if it has a call to a shard.
    pub(super) fn has_call_to(&self, shard: Shard) -> bool {
        self.pipeline.calls.iter().any(|call| call.shard == shard)
    }

    /// Adds a call that is only a heartbeat.
    pub(super) fn add_empty(&mut self, shard: Shard) {
        self.add_unread(shard, std::iter::empty());
    }

    /// Adds a call with these questions, and ignores the replies.
    pub(super) fn add_unread(&mut self, shard: Shard, questions: impl Iterator<Item = Question>) {
        let asks =
            questions.map(|question| Ask { questions: vec![question], ..Ask::default() }).collect();
        self.add(call(shard, asks));
    }

    pub(super) fn add_operations(&mut self, operations: Vec<Operation>, shards: Shards) {
        for operation in operations {
            self.add_ask(shards.of(operation.caller()), operation.ask());
        }
    }

    /// Adds a call with settlements. They come first in the call to their shard.
    pub(super) fn add_settlements(
        &mut self,
        shard: Shard,
        settles: SettlementBatch,
        charges: Vec<Charge>,
    ) {
        let asks = charges.into_iter().map(|charge| {
            let receiver = receiver_of(&charge);
            Ask { questions: vec![Question::Rule(charge)], receiver, ..Ask::default() }
        });
        self.add(call(shard, asks.collect()));
        if let Some(call) = self.pipeline.calls.last_mut() {
            call.settles = Some(settles);
        }
    }

    /// Adds an ask to the call to its shard.
    pub(super) fn add_ask(&mut self, shard: Shard, ask: Ask) {
        match self.pipeline.calls.iter_mut().find(|call| call.shard == shard) {
            Some(call) => {
                self.questions += ask.questions.len();
                call.asks.push(ask);
            }
            None => self.add(call(shard, vec![ask])),
        }
    }
}

/// A call without settlements.
fn call(shard: Shard, asks: Vec<Ask>) -> ScriptCall {
    ScriptCall { shard, script: Script::Digest, asks, settles: None }
}

/// The store that gets the reply to a settlement.
fn receiver_of(charge: &Charge) -> Option<Receiver> {
    let Effect::Report { rule, plan, .. } = charge.effect else { return None };
    Some(Receiver::Store(rule, Account { key: charge.caller, plan }))
}
