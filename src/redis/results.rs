//! The results of questions, from the replies of Redis until all of a request are there.

use std::collections::{BTreeMap, VecDeque};

use super::protocol::{Ask, AskReply};
use diana_policy::time::{Micros, Now};
use diana_store::backend::Receiver;
use diana_store::replies::{QuestionResult, Replies};

/// The results that have not been read.
#[derive(Default)]
pub struct Results {
    /// By the number of the request or order: the number of its asks without a result, and the
    /// other results.
    requests: BTreeMap<u64, (usize, Replies)>,
    /// Complete results that are not passed on yet, in order.
    completed: VecDeque<(Receiver, Replies)>,
}

impl Results {
    /// Records that one more ask of the request or order with this number needs a result.
    pub fn add_ask(&mut self, id: u64) {
        self.requests.entry(id).or_default().0 += 1;
    }

    /// Stores the decisions that Redis made at `at`, or `there` on its clock, about asks that were sent at `sent`.
    pub fn add_replies(
        &mut self,
        asks: Vec<Ask>,
        replies: Vec<AskReply>,
        sent: Now,
        (at, there): (Micros, Micros),
    ) {
        for (ask, AskReply { wait, replies }) in asks.into_iter().zip(replies) {
            let result = |reply| QuestionResult::Decided { reply, wait, sent, at, there };
            self.add(ask, replies.into_iter().map(result));
        }
    }

    /// Stores this result of asks without a decision.
    pub fn add_all(&mut self, asks: impl IntoIterator<Item = Ask>, result: QuestionResult) {
        asks.into_iter().for_each(|ask| self.add(ask, std::iter::repeat(result)));
    }

    /// Stores the results of an ask, one for each question, unless the ask has no receiver.
    fn add(&mut self, ask: Ask, results: impl Iterator<Item = QuestionResult>) {
        let Some(receiver) = ask.receiver else { return };
        let (missing, mut answered) = match receiver {
            Receiver::Request(id) => match self.requests.remove(&id) {
                Some((missing, answered)) => (missing.saturating_sub(1), answered),
                None => return,
            },
            Receiver::Store(..) | Receiver::Bans(..) => (0, Replies::default()),
        };
        answered.add(ask.questions.into_iter().zip(results));
        match receiver {
            Receiver::Request(id) if missing > 0 => {
                self.requests.insert(id, (missing, answered));
            }
            _ => self.completed.push_back((receiver, answered)),
        }
    }

    /// The next request, order or operation that is complete, with its results.
    pub fn next_complete(&mut self) -> Option<(Receiver, Replies)> {
        self.completed.pop_front()
    }
}
