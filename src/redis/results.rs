//! The results of questions, from the replies of Redis until the stores and bans read them.

use std::collections::{BTreeMap, VecDeque};

use super::protocol::{Ask, AskReply, Reply};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
use diana_store::backend::Receiver;

/// The result of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionResult {
    /// Redis decided.
    Decided {
        /// The reply.
        reply: Reply,
        /// Ticks until the request may proceed by all questions of this ask; `None` if it was
        /// refused, without a charge.
        wait: Option<Micros>,
        /// When it was asked.
        sent: Now,
        /// When it decided, on this gateway's monotonic clock.
        at: Micros,
    },
    /// Redis is unavailable, so that the gateway decides.
    Degraded,
    /// The question was lost: callers are hashed with another secret from now on, or the root of
    /// the call has ended. The request must be decided again.
    Repeat,
}

/// The results that have not been read.
#[derive(Default)]
pub struct Results {
    /// By the number of the request or order.
    requests: BTreeMap<u64, RequestResults>,
    /// What is complete and not passed on yet, in order; an operation with its result.
    completed: VecDeque<(Receiver, Vec<AnsweredQuestion>)>,
    /// The results that stores and bans read now.
    current: Vec<AnsweredQuestion>,
}

/// The results for one request or order.
#[derive(Default)]
struct RequestResults {
    /// The number of its asks without a result.
    missing: usize,
    answered: Vec<AnsweredQuestion>,
}

/// A question with its result. The rule, or its bans, and the caller identify it among all
/// questions of its receiver.
struct AnsweredQuestion {
    fingerprint: u64,
    caller: Key,
    result: QuestionResult,
}

impl Results {
    /// Records that one more ask of the request or order with this number needs a result.
    pub fn add_ask(&mut self, id: u64) {
        self.requests.entry(id).or_default().missing += 1;
    }

    /// Stores the decisions that Redis made at `at` about asks that were sent at `sent`.
    pub fn add_replies(&mut self, asks: &[Ask], replies: Vec<AskReply>, sent: Now, at: Micros) {
        for (ask, AskReply { wait, replies }) in asks.iter().zip(replies) {
            let result = |reply| QuestionResult::Decided { reply, wait, sent, at };
            self.add(ask, replies.into_iter().map(result));
        }
    }

    /// Stores this result of asks without a decision.
    pub fn add_all(&mut self, asks: impl IntoIterator<Item = Ask>, result: QuestionResult) {
        asks.into_iter().for_each(|ask| self.add(&ask, std::iter::repeat(result)));
    }

    /// Stores the results of an ask, one for each question, unless the ask has no receiver.
    fn add(&mut self, ask: &Ask, results: impl Iterator<Item = QuestionResult>) {
        let answered = ask.questions.iter().zip(results).map(|(question, result)| {
            let (fingerprint, caller) = (question.fingerprint(), question.caller());
            AnsweredQuestion { fingerprint, caller, result }
        });
        match ask.receiver {
            Some(receiver @ Receiver::Request(id)) => {
                let Some(request) = self.requests.get_mut(&id) else { return };
                request.answered.extend(answered);
                request.missing = request.missing.saturating_sub(1);
                if request.missing == 0 {
                    self.completed.push_back((receiver, Vec::new()));
                }
            }
            Some(receiver) => self.completed.push_back((receiver, answered.collect())),
            None => {}
        }
    }

    /// The next request, order or operation that is complete. The result of an operation can be
    /// read until the next call.
    pub fn next_complete(&mut self) -> Option<Receiver> {
        let (receiver, answered) = self.completed.pop_front()?;
        self.current = answered;
        Some(receiver)
    }

    /// From now on, the results for the request or order with this number can be read.
    pub fn begin(&mut self, id: u64) {
        self.current = self.requests.remove(&id).unwrap_or_default().answered;
    }

    /// The result of a question about a caller of the rule, or of the bans, with this fingerprint.
    #[must_use]
    pub fn of(&self, fingerprint: u64, caller: Key) -> Option<QuestionResult> {
        let is_own = |it: &&AnsweredQuestion| it.fingerprint == fingerprint && it.caller == caller;
        self.current.iter().find(is_own).map(|it| it.result)
    }
}
