//! A rule's bans: here, or in Redis.

use crate::key::Key;
use crate::redis::bans::RedisBans;
use crate::redis::handle::Handle;
use crate::store::bans::Bans;
use crate::time::Micros;

/// The bans of one rule; its functions are those of [`Bans`].
pub(super) enum Banned {
    /// Counted by this gateway.
    Here(Box<dyn Bans>),
    /// Counted by all gateways.
    Redis(Box<RedisBans>),
}

impl Banned {
    /// What is counted in Redis, if it is.
    pub(super) fn redis(&mut self) -> Option<&mut RedisBans> {
        match self {
            Banned::Here(_) => None,
            Banned::Redis(bans) => Some(bans),
        }
    }

    #[inline(never)]
    pub(super) fn left(&mut self, key: Key, now: Micros, handle: &mut Handle) -> Micros {
        match self {
            Banned::Here(bans) => bans.left(key, now),
            Banned::Redis(bans) => bans.left(key, now, handle),
        }
    }

    pub(super) fn refused(&mut self, key: Key, now: Micros, handle: &mut Handle) {
        match self {
            Banned::Here(bans) => bans.refused(key, now),
            Banned::Redis(bans) => bans.refused(key, now, handle),
        }
    }

    pub(super) fn tidy(&mut self, now: Micros, handle: &mut Handle) {
        match self {
            Banned::Here(bans) => bans.tidy(now),
            Banned::Redis(bans) => bans.tidy(now, handle),
        }
    }

    pub(super) fn begun(&mut self) -> u64 {
        match self {
            Banned::Here(bans) => bans.begun(),
            Banned::Redis(bans) => bans.begun(),
        }
    }
}
