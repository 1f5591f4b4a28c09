//! A refusal that still lasts, so that whoever is refused again and again costs no question.

use crate::time::{Micros, Now, SECOND};

/// How long a refusal is remembered at most: what is known elsewhere may change, such as the limit.
const LONGEST: Micros = SECOND;

/// How long the level above is not asked again at most that had no permits for now: in this time those who
/// wait for permits are answered from here.
pub(crate) const RECHECK: Micros = SECOND / 50;

/// What the level above said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Refusal {
    /// What the request takes that was refused; what takes less may be admitted.
    pub(crate) cost: u64,
    /// Ticks after which the request would be admitted.
    pub(crate) retry: Micros,
    /// Ticks for which others may hold the permits that are missing; zero if those were used.
    pub(crate) loan: Micros,
    /// Permits left, too few for the request.
    pub(crate) left: u64,
}

/// The latest refusal of one caller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Remembered {
    refusal: Refusal,
    since: Micros,
    until: Micros,
}

impl Remembered {
    /// Remembers a refusal for as long as it lasts. It was heard of at `now`, and decided no earlier than
    /// at `sent`.
    pub(crate) fn set(&mut self, refusal: Refusal, sent: Now, now: Now) {
        (self.refusal, self.since) = (refusal, now.mono);
        self.until = match refusal.loan {
            0 => sent.mono.saturating_add(refusal.retry.min(LONGEST)),
            // Those who wait ask again at such instants.
            loan => {
                let next = (now.mono / RECHECK + 1).saturating_mul(RECHECK);
                now.mono.saturating_add(loan).min(next)
            }
        };
    }

    /// The same, but not so long that nobody would notice if it was caused by a charge that is taken
    /// back at once.
    pub(crate) fn set_shortly(&mut self, refusal: Refusal, now: Now) {
        self.set(refusal, now, now);
        self.until = self.until.min(now.mono.saturating_add(RECHECK));
    }

    /// Forgets it.
    pub(crate) fn clear(&mut self) {
        *self = Remembered::default();
    }

    /// Forgets it unless it is final: one that is not is remembered for a moment only.
    pub(crate) fn clear_unless_final(&mut self) {
        if self.until <= self.since.saturating_add(RECHECK) {
            self.clear();
        }
    }

    /// The refusal as it stands at `now` for a request that takes `cost` permits, if it still lasts. One that takes
    /// more than the one that was refused may have to wait for longer, and hears of it then.
    pub(crate) fn at(&self, cost: u64, now: Now) -> Option<Refusal> {
        let age = now.mono.saturating_sub(self.since);
        let Refusal { cost: least, retry, loan, left } = self.refusal;
        let loan = if loan > 0 { loan.saturating_sub(age).max(1) } else { 0 };
        let refusal = Refusal { cost: least, retry: retry.saturating_sub(age).max(1), loan, left };
        (now.mono < self.until && cost >= least).then_some(refusal)
    }

    /// Ticks since the last refusal.
    pub(crate) fn age(&self, now: Now) -> Micros {
        now.mono.saturating_sub(self.since)
    }
}
