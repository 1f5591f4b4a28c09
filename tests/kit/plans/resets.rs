//! Repeated resets of a caller with open requests of any plan. An oracle remembers every
//! reservation, computes the remaining charges, and checks that the caller gets no more permits
//! from then on.

use diana_algorithm::Entry;
use diana_policy::Quota;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use fastrand::Rng;

use super::{Given, keeps_the_bound};
use crate::oracle::oracle;

/// A caller after its usage was reset.
pub struct Left {
    pub used: u64,
    pub reserved: u64,
}

/// A counter for one caller, under a rule that stores usage separately from reservations.
pub trait Counter {
    /// Charges a request under a plan. Returns the receipt if it is admitted.
    fn charge(&mut self, plan: usize, cost: u64, now: Now) -> Option<u64>;

    /// Settles a request under its plan.
    fn settle(&mut self, plan: usize, settlement: &Settlement, now: Now);

    fn reset(&mut self, plan: usize, now: Now) -> Left;
}

/// An open request, with the index of its admission.
struct Open {
    place: usize,
    plan: usize,
    settlement: Settlement,
}

/// Statistics of a run.
#[derive(Debug, Default)]
pub struct Tally {
    pub resets: usize,
    pub refused: usize,
    /// Requests that were settled after a reset.
    pub late: usize,
    pub debts: usize,
}

struct Play<'p> {
    short: &'static str,
    quotas: &'p [Quota],
    given: Vec<Given>,
    open: Vec<Open>,
    /// Whether a request exceeded its reservation since the last reset. The usage may then exceed
    /// the limit.
    is_in_debt: bool,
    reset_at: Now,
    tally: Tally,
}

/// Checks `steps` random operations of one caller.
pub fn follow(
    entry: &'static Entry,
    quotas: &[Quota],
    counter: &mut dyn Counter,
    mut now: Now,
    steps: usize,
    rng: &mut Rng,
) -> Tally {
    let own = quotas[0];
    let pace = (own.period() / (own.rpu / own.cost).max(1)).clamp(1, 1 << 40);
    let (given, open, tally) = (Vec::new(), Vec::new(), Tally::default());
    let short = entry.short;
    let mut play = Play { short, quotas, given, open, is_in_debt: false, reset_at: now, tally };
    let mut plan = 0;
    for _ in 0..steps {
        now = now.later(rng.u64(0..=pace / 2));
        if rng.u8(0..20) == 0 {
            plan = rng.usize(0..quotas.len());
        }
        match rng.u8(0..60) {
            0 => play.reset(counter, rng.usize(0..quotas.len()), now),
            1..15 => play.settle(counter, now, rng),
            _ => play.request(counter, plan, rng.u64(1..=own.cost), now),
        }
    }
    play.is_bounded();
    play.tally
}

impl Play<'_> {
    fn is_bounded(&self) {
        if !self.is_in_debt {
            keeps_the_bound(self.short, self.quotas, &self.given);
        }
    }

    fn request(&mut self, counter: &mut dyn Counter, plan: usize, reserved: u64, now: Now) {
        let Some(receipt) = counter.charge(plan, reserved, now) else {
            self.tally.refused += 1;
            return;
        };
        let settlement = Settlement { receipt, since: now.mono, reserved, used: 0 };
        self.open.push(Open { place: self.given.len(), plan, settlement });
        self.given.push(Given { at: now, cost: reserved, plan });
    }

    fn settle(&mut self, counter: &mut dyn Counter, now: Now, rng: &mut Rng) {
        if self.open.is_empty() {
            return;
        }
        let Open { place, plan, settlement } = self.open.swap_remove(rng.usize(..self.open.len()));
        let used = match rng.u8(0..8) {
            // No slice may reach its maximum, 2³².
            0 => settlement.reserved + rng.u64(1..=self.quotas[plan].rpu.min(1 << 20)),
            1..3 => 0,
            3..6 => settlement.reserved,
            _ => rng.u64(0..=settlement.reserved),
        };
        counter.settle(plan, &Settlement { used, ..settlement }, now);
        self.given[place].cost = used.min(settlement.reserved);
        self.is_in_debt |= used > settlement.reserved;
        self.tally.debts += usize::from(used > settlement.reserved);
        self.tally.late += usize::from(self.given[place].at.mono < self.reset_at.mono);
    }

    fn reset(&mut self, counter: &mut dyn Counter, plan: usize, now: Now) {
        self.is_bounded();
        let Left { used, reserved } = counter.reset(plan, now);
        self.tally.resets += 1;
        self.reset_at = now;
        assert_eq!(used, 0, "{} by {:?}", self.short, self.quotas);
        self.is_in_debt = false;
        // Open requests count from their arrival.
        let open = std::mem::take(&mut self.open);
        let mut given: Vec<(Given, Open)> = open
            .into_iter()
            .map(|open| (Given { cost: open.settlement.reserved, ..self.given[open.place] }, open))
            .collect();
        given.sort_by_key(|(given, _)| given.at.mono);
        let all = given.iter().filter(|(given, _)| self.counts(given.at, now));
        let all: u64 = all.map(|(given, _)| given.cost).sum();
        assert_eq!(reserved, all, "reserved of {} by {:?}", self.short, self.quotas);
        let places = given.iter_mut().enumerate();
        places.for_each(|(place, (_, open))| open.place = place);
        (self.given, self.open) = given.into_iter().unzip();
    }

    /// Returns true if a charge at one instant counts at a later one.
    fn counts(&self, then: Now, now: Now) -> bool {
        oracle(self.short).counts(&self.quotas[0], then, now)
    }
}
