//! What a request waits for.

use super::protocol::Reply;
use super::target::Target;
use diana_policy::time::{Micros, Now};

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Redis decided.
    Decided {
        /// As it said.
        reply: Reply,
        /// Ticks until the request may leave by all that was asked with it; nothing if it was refused and
        /// nothing was charged.
        wait: Option<Micros>,
        /// When it was asked.
        sent: Now,
        /// When it decided, on this gateway's monotonic clock.
        at: Micros,
    },
    /// The gateway has to decide alone.
    Alone,
    /// It came to nothing, since callers are hashed with another secret from now on or since no answer will
    /// be told: the request is to be judged anew.
    Again,
}

/// The questions of one request, which may lie in several parts of Redis and are answered part by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    questions: Vec<(Target, Option<Settled>)>,
}

impl Pending {
    /// Questions about each of these.
    #[must_use]
    pub fn new(targets: impl IntoIterator<Item = Target>) -> Pending {
        Pending { questions: targets.into_iter().map(|target| (target, None)).collect() }
    }

    /// Whether there is a question about it.
    #[must_use]
    pub fn is_about(&self, target: Target) -> bool {
        self.questions.iter().any(|(other, _)| *other == target)
    }

    /// Notes what became of a question. What is known already stays.
    pub fn settle(&mut self, target: Target, settled: Settled) {
        let question = self.questions.iter_mut().find(|(other, _)| *other == target);
        question.into_iter().for_each(|(_, known)| *known = known.or(Some(settled)));
    }

    /// What is not known yet.
    pub fn missing(&self) -> impl Iterator<Item = Target> {
        self.questions.iter().filter(|(_, settled)| settled.is_none()).map(|(target, _)| *target)
    }

    /// Whether everything is known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing().next().is_none()
    }

    /// What became of a question.
    #[must_use]
    pub fn settled(&self, target: Target) -> Option<Settled> {
        self.questions.iter().find(|(other, _)| *other == target)?.1
    }

    /// Whether the request is to be judged anew.
    #[must_use]
    pub fn is_again(&self) -> bool {
        self.questions.iter().any(|(_, settled)| *settled == Some(Settled::Again))
    }
}
