//! A batch: the calls of one host call, and the receivers of their results.

use super::{GRACE, SHORTEST};
use crate::handle::Operation;
use crate::protocol::{
    Ask, Charge, Failure, Login, Pipeline, Question, Script, ScriptAnswer, ScriptCall,
    SettlementBatch,
};
use crate::shard::{Shard, Shards};
use crate::target::Target;
use diana_policy::key::Key;
use diana_policy::port;
use diana_policy::time::{Micros, Now};

/// An ask of a request in one shard, not sent yet.
pub(super) struct Wait {
    /// The number of the request.
    pub(super) id: u64,
    pub(super) since: Micros,
    pub(super) shard: Shard,
    /// The numbers of its questions.
    pub(super) numbers: Vec<usize>,
    pub(super) ask: Ask,
}

impl Wait {
    /// Adds a question in the same shard.
    pub(super) fn add(&mut self, number: usize, question: Question) {
        self.numbers.push(number);
        self.ask.questions.push(question);
    }
}

/// The receiver of a reply.
pub(super) enum Receiver {
    /// The request with this number: the numbers of its questions.
    Request(u64, Vec<usize>),
    /// An operation, for this caller and plan.
    Operation(Target, Key, u32),
    /// None: the ask only returns permits.
    Unread,
}

/// Calls that are sent together, in one call of the host.
pub(super) struct Batch {
    pub(super) token: u32,
    pub(super) pipeline: Pipeline,
    /// Whether it is a probe.
    pub(super) probing: bool,
    /// The root that made the call and receives the reply.
    pub(super) caller: u32,
    pub(super) sent: Now,
    /// The timeout of the call of the host.
    pub(super) timeout: Micros,
    /// When its asks must have a result.
    pub(super) ends_at: Micros,
    /// Whether its calls were lost once.
    pub(super) is_second: bool,
    /// Whether it is only a heartbeat of the gateway.
    pub(super) is_beat: bool,
    /// The receivers of the asks of each call.
    receivers: Vec<Vec<Receiver>>,
    /// The number of questions of all calls.
    pub(super) questions: usize,
}

impl Batch {
    /// A batch without calls, whose asks must have a result at `ends_at`.
    pub(super) fn new(pipeline: Pipeline, ends_at: Micros) -> Batch {
        Batch {
            token: 0,
            pipeline,
            probing: false,
            caller: 0,
            sent: Now::default(),
            timeout: 0,
            ends_at,
            is_second: false,
            is_beat: false,
            receivers: Vec::new(),
            questions: 0,
        }
    }

    /// The instant at which it fails without a reply.
    pub(super) fn expires_at(&self) -> Micros {
        self.sent.mono.saturating_add(self.timeout + GRACE)
    }

    /// The number of asks of all calls.
    pub(super) fn asks(&self) -> u64 {
        self.receivers.iter().map(|receivers| receivers.len() as u64).sum()
    }

    /// The result of each call.
    pub(super) fn read(
        &self,
        login: &Login,
        answer: &port::Answer<'_>,
        now: Micros,
    ) -> Vec<Result<ScriptAnswer, Failure>> {
        // The host's timeout starts at its latest read of the clock, which on a busy worker is long
        // before the call: 20 ms have ended after 7 ms. The host reports a timeout and a reset
        // connection alike.
        let early = now.saturating_sub(self.sent.mono) < self.timeout / 4;
        let failure = match answer.status {
            None if early => Failure::Reset,
            None | Some(504) => Failure::Timeout,
            Some(503) => Failure::Unreachable,
            Some(200) => return self.pipeline.answers(login, &(answer.body)().unwrap_or_default()),
            Some(_) => Failure::Garbage,
        };
        self.pipeline.all(&failure)
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
            ..Batch::new(pipeline, self.ends_at)
        }
    }

    /// Adds a call of another batch that was lost, except for the effects that must not happen twice.
    pub(super) fn add_lost(&mut self, call: ScriptCall, receivers: Vec<Receiver>) -> Vec<Receiver> {
        let settled = call.settles.map_or(0, |settles| settles.asks);
        let is_repeatable = |(number, (ask, _)): &(usize, (Ask, Receiver))| {
            *number < settled || ask.questions.iter().all(Question::is_repeatable)
        };
        let asks = call.asks.into_iter().zip(receivers).enumerate();
        let (again, rest): (Vec<_>, Vec<_>) = asks.partition(is_repeatable);
        let (asks, receivers) = again.into_iter().map(|(_, pair)| pair).unzip();
        self.add(ScriptCall { asks, ..call }, receivers);
        rest.into_iter().map(|(_, (_, receiver))| receiver).collect()
    }

    /// Removes its calls, with the receivers of the asks of each.
    pub(super) fn take(&mut self) -> Vec<(ScriptCall, Vec<Receiver>)> {
        let calls = std::mem::take(&mut self.pipeline.calls);
        calls.into_iter().zip(std::mem::take(&mut self.receivers)).collect()
    }

    /// Adds a call.
    pub(super) fn add(&mut self, call: ScriptCall, receivers: Vec<Receiver>) {
        self.questions += call.asks.iter().map(|ask| ask.questions.len()).sum::<usize>();
        self.pipeline.calls.push(call);
        self.receivers.push(receivers);
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
        let asks: Vec<Ask> =
            questions.map(|question| Ask { delay: 0, questions: vec![question] }).collect();
        let receivers = asks.iter().map(|_| Receiver::Unread).collect();
        self.add(call(shard, asks), receivers);
    }

    pub(super) fn add_request(&mut self, wait: Wait) {
        let Wait { id, shard, numbers, ask, .. } = wait;
        self.add_ask(shard, ask, Receiver::Request(id, numbers));
    }

    pub(super) fn add_operations(&mut self, operations: Vec<Operation>, shards: Shards) {
        for operation in operations {
            let (target, plan) = (operation.target(), operation.plan());
            let question = operation.question();
            let caller = question.caller();
            let receivers =
                target.map_or(Receiver::Unread, |target| Receiver::Operation(target, caller, plan));
            let ask = Ask { delay: 0, questions: vec![question] };
            self.add_ask(shards.of(caller), ask, receivers);
        }
    }

    /// Adds a call with settlements. They come first in the call to their shard.
    pub(super) fn add_settlements(
        &mut self,
        shard: Shard,
        settles: SettlementBatch,
        charges: Vec<Charge>,
    ) {
        self.add_unread(shard, charges.into_iter().map(Question::Rule));
        if let Some(call) = self.pipeline.calls.last_mut() {
            call.settles = Some(settles);
        }
    }

    /// Adds an ask to the call to its shard.
    fn add_ask(&mut self, shard: Shard, ask: Ask, receivers: Receiver) {
        let calls = self.pipeline.calls.iter_mut().zip(&mut self.receivers);
        match calls.into_iter().find(|(call, _)| call.shard == shard) {
            Some((call, all)) => {
                self.questions += ask.questions.len();
                call.asks.push(ask);
                all.push(receivers);
            }
            None => self.add(call(shard, vec![ask]), vec![receivers]),
        }
    }
}

/// A call without settlements.
fn call(shard: Shard, asks: Vec<Ask>) -> ScriptCall {
    ScriptCall { shard, script: Script::Digest, asks, settles: None }
}
