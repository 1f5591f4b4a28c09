//! What a caller used is lifted, again and again, while its requests are under way that were reserved by whichever plan:
//! an oracle that remembers every reservation says what stays charged, and that nobody gets more from then on.

use diana_algorithm::Entry;
use diana_policy::Quota;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use fastrand::Rng;

use super::{Given, keeps_the_bound, window};

/// What is told of a caller after its usage was lifted.
pub struct Left {
    pub used: u64,
    pub reserved: u64,
}

/// Whoever counts one caller of a rule that keeps what was used beside what is reserved.
pub trait Counter {
    /// Charges a request by a plan. What its charge is known by, if it is let through.
    fn charge(&mut self, plan: usize, cost: u64, now: Now) -> Option<u64>;

    /// Settles one that was charged by a plan.
    fn settle(&mut self, plan: usize, settlement: &Settlement, now: Now);

    fn lift(&mut self, plan: usize, now: Now) -> Left;
}

/// A request under way: which of those it is that were given.
struct Open {
    place: usize,
    plan: usize,
    settlement: Settlement,
}

/// How much a play has tried.
#[derive(Debug, Default)]
pub struct Tally {
    pub lifted: usize,
    pub refused: usize,
    /// Requests that were settled after a lift.
    pub late: usize,
    pub debts: usize,
}

struct Play<'p> {
    short: &'static str,
    quotas: &'p [Quota],
    given: Vec<Given>,
    open: Vec<Open>,
    /// Whether any used more than was reserved for it since it was last lifted: that may be beyond the limit.
    is_in_debt: bool,
    lifted: Now,
    tally: Tally,
}

/// Follows one caller for so many steps.
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
    let mut play = Play { short, quotas, given, open, is_in_debt: false, lifted: now, tally };
    let mut plan = 0;
    for _ in 0..steps {
        now = now.later(rng.u64(0..=pace / 2));
        if rng.u8(0..20) == 0 {
            plan = rng.usize(0..quotas.len());
        }
        match rng.u8(0..60) {
            0 => play.lift(counter, rng.usize(0..quotas.len()), now),
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
            // No slice may come to its end, which is 2³².
            0 => settlement.reserved + rng.u64(1..=self.quotas[plan].rpu.min(1 << 20)),
            1..3 => 0,
            3..6 => settlement.reserved,
            _ => rng.u64(0..=settlement.reserved),
        };
        counter.settle(plan, &Settlement { used, ..settlement }, now);
        self.given[place].cost = used.min(settlement.reserved);
        self.is_in_debt |= used > settlement.reserved;
        self.tally.debts += usize::from(used > settlement.reserved);
        self.tally.late += usize::from(self.given[place].at.mono < self.lifted.mono);
    }

    fn lift(&mut self, counter: &mut dyn Counter, plan: usize, now: Now) {
        self.is_bounded();
        let Left { used, reserved } = counter.lift(plan, now);
        self.tally.lifted += 1;
        self.lifted = now;
        assert_eq!(used, 0, "{} by {:?}", self.short, self.quotas);
        self.is_in_debt = false;
        // What is under way counts from when it came.
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

    /// Whether what was charged at one instant counts at a later one.
    fn counts(&self, then: Now, now: Now) -> bool {
        let quota = &self.quotas[0];
        let (unit, slices) = (quota.period(), quota.slices.unwrap_or(10));
        let slice = |at: Now| at.mono / unit * slices + at.mono % unit * slices / unit;
        match self.short {
            "W" => window(quota, then) == window(quota, now),
            "SW" => slice(then) + slices >= slice(now),
            other => panic!("`{other}` settles nothing"),
        }
    }
}
