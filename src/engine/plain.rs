//! The short way of requests under a single rule that says nothing of those that it admits.

use super::Engine;
use crate::caller::Caller;
use crate::key::Key;
use crate::port::{Clock, Request};

/// Whom a single plain rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// All as one.
    Everybody,
    /// Callers by an actor, as numbered in [`crate::caller::Callers`].
    Actor(usize),
}

impl Engine {
    /// The short way of most requests under a single rule, kept apart from the long one so that it
    /// touches little code. Whether the request was charged and goes on, and nothing else is to be
    /// done; otherwise nothing was charged, and [`Engine::decide`] has to.
    #[inline]
    pub fn pass(&mut self, request: &dyn Request, clock: &dyn Clock) -> bool {
        let key = match self.plain {
            None => return false,
            Some(Plain::Everybody) => Key::ALL,
            Some(Plain::Actor(actor)) => {
                self.callers.begin();
                match self.callers.of(actor, request) {
                    Caller::Known { key, .. } => key,
                    Caller::Shared | Caller::Absent => return false,
                }
            }
        };
        let Some(judge) = self.rules.first_mut() else { return false };
        let now = clock.now();
        if judge.bans.as_mut().is_some_and(|bans| bans.left(key, now.mono) > 0) {
            return false;
        }
        if judge.hot.as_mut().is_some_and(|spotter| spotter.is_hot(key.hash)) {
            return false;
        }
        let passed = judge.store.pass(key, now);
        judge.counts.allowed += u64::from(passed);
        if passed && let Some(spotter) = &mut judge.hot {
            spotter.see(key.hash);
        }
        passed
    }
}
