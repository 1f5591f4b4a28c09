//! Places in flight: what was taken counts for a second or two, and what is held, of which each settlement says how much it
//! is in all, for as long as its holder says that it lives.

use std::collections::{BTreeMap, HashMap};

use super::Asked;
use diana_policy::time::SECOND;

/// For how long a holder counts as alive after a sign of life, in milliseconds: Redis expires keys by these.
const LIVES: u64 = 1500;

/// What a charge says beside what it takes: that a place is held which was taken, and the total.
const HOLDS: u64 = 3;

/// The places of all callers.
#[derive(Default)]
pub struct Places {
    /// The last millisecond in which each holder is believed.
    lives: HashMap<u64, u64>,
    callers: HashMap<(u64, u64), Caller>,
}

/// The places of one caller.
#[derive(Default)]
struct Caller {
    /// Those that are not said to be held yet, by the seconds in which they were taken.
    taken: BTreeMap<u64, u64>,
    /// Those of each holder.
    held: BTreeMap<u64, u64>,
}

impl Places {
    /// What is answered about a caller of a rule that has so many places, by whoever holds places under that number.
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
        if fits && asked.cost > 0 {
            *own.taken.entry(second).or_default() += asked.cost;
        }
        let charged = if fits { asked.cost } else { 0 };
        if charged > 0 || asked.what >= HOLDS && asked.left > 0 {
            // Only a write forgets dead holders; they may come back until then.
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

    /// How many places are in flight, by all that was said.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.callers.values().flat_map(|caller| caller.held.values()).sum()
    }
}
