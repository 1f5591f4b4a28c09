//! A batch: the calls of one host call, and the receivers of their results.

use super::GRACE;
use crate::handle::Operation;
use crate::protocol::{
    Ask, Charge, Failure, Login, Question, Script, ScriptAnswer, ScriptCall, Settles, Trip,
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
    pub(super) part: Shard,
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
pub(super) enum Who {
    /// The request with this number: the numbers of its questions.
    Request(u64, Vec<usize>),
    /// An operation, for this caller and plan.
    Operation(Target, Key, u32),
    /// None: the ask only returns permits.
    Nobody,
}

/// Calls that are sent together, in one call of the host.
pub(super) struct Batch {
    pub(super) token: u32,
    pub(super) trip: Trip,
    /// Whether it is a probe.
    pub(super) probing: bool,
    /// The root that made the call and receives the reply.
    pub(super) caller: u32,
    pub(super) sent: Now,
    pub(super) timeout: Micros,
    /// The receivers of the asks of each call.
    who: Vec<Vec<Who>>,
    /// The number of questions of all calls.
    pub(super) questions: usize,
}

impl Batch {
    /// A batch without calls.
    pub(super) fn new(trip: Trip, timeout: Micros) -> Batch {
        Batch {
            token: 0,
            trip,
            probing: false,
            caller: 0,
            sent: Now::default(),
            timeout,
            who: Vec::new(),
            questions: 0,
        }
    }

    /// The instant at which it fails without a reply.
    pub(super) fn given_up(&self) -> Micros {
        self.sent.mono.saturating_add(self.timeout + GRACE)
    }

    /// The number of asks of all calls.
    pub(super) fn asks(&self) -> u64 {
        self.who.iter().map(|who| who.len() as u64).sum()
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
            Some(200) => return self.trip.answers(login, &(answer.body)().unwrap_or_default()),
            Some(_) => Failure::Garbage,
        };
        self.trip.all(&failure)
    }

    /// Removes its calls, with the receivers of the asks of each.
    pub(super) fn take(&mut self) -> Vec<(ScriptCall, Vec<Who>)> {
        let calls = std::mem::take(&mut self.trip.calls);
        calls.into_iter().zip(std::mem::take(&mut self.who)).collect()
    }

    /// Adds a call.
    pub(super) fn add(&mut self, call: ScriptCall, who: Vec<Who>) {
        self.questions += call.asks.iter().map(|ask| ask.questions.len()).sum::<usize>();
        self.trip.calls.push(call);
        self.who.push(who);
    }

    /// Returns true if it has a call to a shard.
    pub(super) fn asks_of(&self, part: Shard) -> bool {
        self.trip.calls.iter().any(|call| call.part == part)
    }

    /// Adds a call that is only a heartbeat.
    pub(super) fn add_empty(&mut self, part: Shard) {
        self.add(call(part, Vec::new()), Vec::new());
    }

    pub(super) fn add_request(&mut self, wait: Wait) {
        let Wait { id, part, numbers, ask, .. } = wait;
        self.add_ask(part, ask, Who::Request(id, numbers));
    }

    pub(super) fn add_operations(&mut self, operations: Vec<Operation>, parts: Shards) {
        for operation in operations {
            let (target, plan) = (operation.target(), operation.plan());
            let question = operation.question();
            let caller = question.caller();
            let who = target.map_or(Who::Nobody, |target| Who::Operation(target, caller, plan));
            let ask = Ask { delay: 0, questions: vec![question] };
            self.add_ask(parts.of(caller), ask, who);
        }
    }

    /// Adds a call with settlements. They come first in the call to their shard.
    pub(super) fn add_settlements(&mut self, part: Shard, settles: Settles, charges: Vec<Charge>) {
        let ask = |charge| Ask { delay: 0, questions: vec![Question::Rule(charge)] };
        let asks: Vec<Ask> = charges.into_iter().map(ask).collect();
        let who = asks.iter().map(|_| Who::Nobody).collect();
        self.add(ScriptCall { settles: Some(settles), ..call(part, asks) }, who);
    }

    /// Adds an ask to the call to its shard.
    fn add_ask(&mut self, part: Shard, ask: Ask, who: Who) {
        let calls = self.trip.calls.iter_mut().zip(&mut self.who);
        match calls.into_iter().find(|(call, _)| call.part == part) {
            Some((call, all)) => {
                self.questions += ask.questions.len();
                call.asks.push(ask);
                all.push(who);
            }
            None => self.add(call(part, vec![ask]), vec![who]),
        }
    }
}

/// A call without settlements.
fn call(part: Shard, asks: Vec<Ask>) -> ScriptCall {
    ScriptCall { part, script: Script::Digest, asks, settles: None }
}
