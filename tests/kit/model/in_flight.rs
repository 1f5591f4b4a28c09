//! In-flight slots. New slots count for one to two seconds. Held slots count as long as their
//! holder reports that it lives. Each settlement reports their total.

use std::collections::{BTreeMap, HashMap};

use super::{Asked, CHECKS};
use diana_policy::time::SECOND;

/// Milliseconds that a holder counts as alive after a report, the unit of expiry in Redis.
const LIVES: u64 = 1500;

/// The kind of a charge that reports a held slot and the total.
const HOLDS: u64 = 3;

/// The slots of all callers.
#[derive(Default)]
pub struct Places {
    /// The last millisecond in which each holder counts as alive.
    lives: HashMap<u64, u64>,
    callers: HashMap<(u64, u64), Caller>,
}

/// The slots of one caller.
#[derive(Default)]
struct Caller {
    /// New slots that no holder has reported, by the second of their charge.
    taken: BTreeMap<u64, u64>,
    /// The slots of each holder.
    held: BTreeMap<u64, u64>,
}

impl Places {
    /// The reply about a caller of a rule with `limit` slots, to a gateway with the number
    /// `holder`.
    pub fn ask(
        &mut self,
        caller: (u64, u64),
        limit: u64,
        holder: u64,
        asked: &Asked,
        delay: u64,
        now: u64,
    ) -> [i64; 11] {
        assert!(holder < 1 << 53, "no number of the script's");
        if holder > 0 {
            self.lives.insert(holder, now / 1000 + LIVES);
        }
        let second = now / SECOND;
        let own = self.callers.entry(caller).or_default();
        own.taken.retain(|taken, _| taken + 1 >= second);
        if asked.what == HOLDS {
            let taken = own.taken.get_mut(&asked.receipt);
            taken.into_iter().for_each(|places| *places = places.saturating_sub(1));
        }
        if asked.what >= HOLDS && asked.left > 0 {
            own.held.insert(holder, asked.left - 1);
        }
        let lives = |holder: &u64| self.lives.get(holder).is_some_and(|last| now / 1000 <= *last);
        let held = own.held.iter().filter(|(holder, _)| lives(holder)).map(|(_, places)| places);
        let in_flight: u64 = own.taken.values().chain(held).sum();
        let fits = in_flight + asked.cost <= limit;
        let charged = if fits && asked.what != CHECKS { asked.cost } else { 0 };
        if charged > 0 {
            *own.taken.entry(second).or_default() += charged;
        }
        if charged > 0 || asked.what >= HOLDS && asked.left > 0 {
            // Only a write removes dead holders. They may return before that.
            own.held.retain(|holder, _| lives(holder));
        }
        let left = limit.saturating_sub(in_flight + charged).cast_signed();
        let receipt = if charged > 0 { second.cast_signed() } else { 0 };
        let (wait, retry) = match fits || asked.cost == 0 {
            true => (delay.cast_signed(), 0),
            false => (-1, -2),
        };
        [wait, retry, 0, left, receipt, 0, 0, receipt, 0, 0, 0]
    }

    /// The number of reported slots.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.callers.values().flat_map(|caller| caller.held.values()).sum()
    }
}
