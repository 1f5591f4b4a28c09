//! The arrears of a caller: permits that this gateway admitted as its share of a fleet's limit, and
//! that the authority of the fleet has not charged yet.
//!
//! The next question about the caller contains them, from any worker of the gateway, and the
//! authority charges them before it decides. A question or its reply may be lost, and several
//! questions may be pending at once. So each contains the total since an instant, which identifies
//! the total. The authority remembers which part of a total it has charged, and charges the rest.
//! Once a reply has confirmed the total, the next arrears begin with a later instant.

use diana_policy::MAX_USED;
use diana_policy::time::{Micros, SECOND};

/// A reply about a later instant was made by a clock that has been set back since.
const LATEST: Micros = 2 * SECOND;

/// The total of a caller's arrears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrears {
    /// The permits.
    pub total: u64,
    /// When they began, on the gateway's monotonic clock. No other total of the caller in this
    /// gateway has the same instant.
    pub since: Micros,
}

/// The arrears in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpenArrears {
    arrears: Arrears,
    /// Whether a question contained them, so that the authority may have charged them.
    is_sent: bool,
}

impl OpenArrears {
    /// Words in a slot.
    pub(crate) const WORDS: usize = 2;

    pub(crate) fn unpack([total, since]: [u64; OpenArrears::WORDS]) -> OpenArrears {
        OpenArrears { arrears: Arrears { total, since: since >> 1 }, is_sent: since & 1 > 0 }
    }

    pub(crate) fn pack(self) -> [u64; OpenArrears::WORDS] {
        let Arrears { total, since } = self.arrears;
        [total, since << 1 | u64::from(self.is_sent)]
    }

    /// Returns true if there are any.
    pub(crate) fn is_any(self) -> bool {
        self.arrears.total > 0
    }

    /// The instant of the latest reply, where a gateway knows callers by the replies of an authority.
    /// There are no arrears then: the words are that instant, and the same on the authority's clock.
    pub(crate) fn replied_at(self) -> Micros {
        self.arrears.total
    }

    /// Records a reply that the authority made `at` this instant, or `there` on its clock. Returns
    /// false if a later one is known: replies come in any order, but no later than this.
    pub(crate) fn reply(&mut self, at: Micros, there: Micros) -> bool {
        let Arrears { total, since } = &mut self.arrears;
        let is_news = there >= *since || *since - there > LATEST;
        if is_news {
            (*total, *since) = (at, there);
        }
        is_news
    }

    /// Adds permits that are charged at `now`.
    pub(crate) fn add(&mut self, permits: u64, now: Micros) {
        let Arrears { total, since } = &mut self.arrears;
        if *total == 0 && permits > 0 {
            (*since, self.is_sent) = (now.max(*since + 1), false);
        }
        *total = total.saturating_add(permits).min(MAX_USED);
    }

    /// Removes permits of a cancelled charge, unless the authority may have charged them.
    pub(crate) fn remove(&mut self, permits: u64) {
        if !self.is_sent {
            self.arrears.total = self.arrears.total.saturating_sub(permits);
        }
    }

    /// Limits the total to the caller's `charged` permits in this gateway: permits that have
    /// expired or drained here must not be charged again. A total that the authority may have
    /// charged only ends as a whole, since a smaller one would hide later permits from it.
    pub(crate) fn limit(&mut self, charged: u64) {
        if charged == 0 || !self.is_sent {
            self.arrears.total = self.arrears.total.min(charged);
        }
    }

    /// The total for a question, if there is one. Sets `is_new` unless an earlier question
    /// contained arrears.
    pub(crate) fn send(&mut self) -> Option<(Arrears, bool)> {
        let is_new = !std::mem::replace(&mut self.is_sent, true);
        (self.arrears.total > 0).then_some((self.arrears, is_new))
    }

    /// Ends arrears that the authority has charged. Returns false if there are others by now.
    pub(crate) fn confirm(&mut self, charged: Arrears) -> bool {
        let is_all = self.arrears == charged && charged.total > 0;
        if is_all {
            (self.arrears.total, self.is_sent) = (0, false);
        }
        is_all
    }
}
