//! The rules of the traces, and the stores that keep them.

use std::sync::Arc;

use diana_algorithm::{Entry, IN_FLIGHT, Leasing, REGISTRY, entry};
use diana_policy::time::{DAY, Micros, Now, SECOND, Unit};
use diana_policy::{Plan, PlanKind, Plans, Quota, Scope, Starts};
use diana_store::CounterSpec;
use diana_store::stores::lines;
use kit::oracle::{Oracle, oracle};
use kit::zones::zone;

/// Where a rule's usage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The table of a worker.
    Worker,
    /// Slots of shared data, which two workers use in turn.
    Slots,
    /// The table of a process, which two workers use in turn.
    Process,
    /// The share of one of two gateways, in slots of shared data.
    Share,
}

impl Place {
    pub fn workers(self) -> usize {
        if self == Place::Worker { 1 } else { 2 }
    }

    /// The scope of a rule in shared data.
    pub fn scope(self) -> Scope {
        if self == Place::Share { Scope::Global } else { Scope::Gateway }
    }

    /// Whether workers keep refusals in mind.
    pub fn remembers(self) -> bool {
        matches!(self, Place::Slots | Place::Share)
    }
}

/// A rule, the same rule after a change of its configuration, and a plan of it.
pub struct Case {
    pub oracle: &'static Oracle,
    /// The quotas in force by configuration, and under each its own and that of the plan.
    pub quotas: [[Quota; 2]; 2],
    pub specs: [CounterSpec; 2],
    pub start: Now,
    /// Whether cancelled charges come back only as the latest ones, as in a queue.
    pub is_queue: bool,
    /// Whether a held request that leaves returns its position.
    pub leaves: bool,
    /// Whether workers lease permits of its callers.
    pub is_busy: bool,
    /// Whether other callers fill its slot until a tick after the beginning.
    pub is_crowded: bool,
}

/// A tick before the end of a minute, of January 2027 in UTC, and of a day in central Europe after which one has 23 hours.
const MINUTE: Micros = 1_700_000_040 * SECOND - 1;
const JANUARY: Micros = 1_801_440_000 * SECOND - 1;
const MARCH: Micros = 1_806_188_400 * SECOND - 1;

/// The same of the year 2027, and of a week that begins on a Wednesday.
const YEAR: Micros = 1_830_297_600 * SECOND - 1;
const WEEK: Micros = 1_806_451_200 * SECOND - 1;

/// Rules of every algorithm.
pub fn cases(place: Place) -> Vec<Case> {
    REGISTRY.iter().flat_map(|entry| cases_of(entry.short, place)).collect()
}

/// Rules of which one expires after the other, so that callers find room while others have none.
pub fn crowded_cases() -> Vec<Case> {
    let mut cases = cases(Place::Slots);
    cases.retain(|case| ["TB", "SW"].contains(&case.specs[0].entry.short));
    cases.dedup_by_key(|case| case.specs[0].entry.short);
    for case in &mut cases {
        case.is_crowded = true;
        case.specs.iter_mut().for_each(|spec| spec.keys = 1);
    }
    cases
}

/// Rules with limits of which a worker leases permits.
pub fn busy_cases(place: Place) -> Vec<Case> {
    let minute = |rpu| Quota::new(Unit::Minute, rpu);
    let second = |rpu| Quota { slices: Some(2), ..Quota::new(Unit::Second, rpu) };
    let sliced = |rpu| Quota { slices: Some(2), ..minute(rpu) };
    let of = |short, wall, quotas: [Quota; 3]| Case {
        is_busy: true,
        ..Case::new(short, place, wall, quotas, false)
    };
    // A lease outlives its slice.
    let mono = DAY + SECOND / 2 - SECOND / 50;
    let late = |case: Case| Case { start: Now { mono, ..case.start }, ..case };
    vec![
        of("W", MINUTE + 1, [20, 24, 20].map(minute)),
        of("W", MINUTE - SECOND / 50, [20, 24, 20].map(minute)),
        of("SW", MINUTE, [20, 24, 20].map(sliced)),
        late(of("SW", MINUTE, [20, 24, 20].map(second))),
        of("TB", MINUTE, [20, 24, 20].map(minute)),
        of("TB", MINUTE, [20, 24, 20].map(second)),
    ]
}

/// Rules of an algorithm: small, and in each the parameters that change what happens.
fn cases_of(short: &str, place: Place) -> Vec<Case> {
    let quota = |unit, rpu| Quota::new(unit, rpu);
    let second = |rpu| quota(Unit::Second, rpu);
    let days = Quota { zone: zone("CET-1CEST,M3.5.0,M10.5.0/3"), ..quota(Unit::Day, 2) };
    let starts = Starts { week: 2, ..Starts::PLAIN };
    let of = |wall, quotas: [Quota; 3]| Case::new(short, place, wall, quotas, false);
    // Counts usage and reservations apart.
    let apart = |wall, quotas: [Quota; 3]| Case::new(short, place, wall, quotas, true);
    let bursts = |rpu: u64, bursts: [u64; 3]| {
        bursts.map(|burst| Quota { burst: Some(burst), ..second(rpu) })
    };
    let queues = |rpu: u64, queues: [u64; 3]| {
        queues.map(|queue| Quota { max_queue: Some(queue), ..second(rpu) })
    };
    let sliced = |slices: u64| [3, 2, 1].map(|rpu| Quota { slices: Some(slices), ..second(rpu) });
    let warm = |quota: Quota| Quota { warm_up: Some(2 * SECOND), ..quota };
    match short {
        "W" => vec![
            of(MINUTE, [3, 2, 1].map(second)),
            of(MINUTE, [1, 0, 4].map(|rpu| quota(Unit::Minute, rpu))),
            of(JANUARY, [2, 3, 1].map(|rpu| quota(Unit::Month, rpu))),
            of(MARCH, [2, 1, 3].map(|rpu| Quota { rpu, ..days })),
            of(YEAR, [1, 2, 3].map(|rpu| quota(Unit::Year, rpu))),
            apart(WEEK, [2, 3, 1].map(|rpu| Quota { starts, ..quota(Unit::Week, rpu) })),
            apart(MINUTE, [3, 2, 1].map(second)),
            apart(JANUARY, [3, 2, 1].map(|rpu| quota(Unit::Month, rpu))),
            apart(MARCH, [2, 1, 3].map(|rpu| Quota { rpu, ..days })),
        ],
        "SW" => vec![
            of(MINUTE, sliced(1)),
            of(MINUTE, sliced(3)),
            apart(MINUTE, sliced(1)),
            apart(MINUTE, sliced(3)),
            apart(MINUTE, sliced(2).map(|quota| Quota { unit: Unit::Minute, ..quota })),
            apart(MINUTE, sliced(2).map(|quota| Quota { is_wide: true, ..quota })),
            of(MINUTE, [1, 3, 2].map(|rpu| Quota { slices: Some(2), ..quota(Unit::Day, rpu) })),
        ],
        "TB" => vec![
            of(MINUTE, [2, 3, 1].map(second)),
            of(MINUTE, bursts(1, [3, 2, 1])),
            of(MINUTE, bursts(3, [1, 3, 2])),
            of(MINUTE, [1, 2, 4].map(|rpu| Quota { burst: Some(2), ..quota(Unit::Minute, rpu) })),
            of(
                MINUTE,
                queues(2, [1, 2, 0]).map(|quota| Quota { max_delay: Some(SECOND), ..quota }),
            ),
            of(MINUTE, [2; 3].map(|rpu| warm(second(rpu)))),
        ],
        "LB" => vec![
            of(MINUTE, [2, 3, 1].map(second)),
            of(MINUTE, queues(3, [1, 2, 0])),
            of(MINUTE, [2; 3].map(|rpu| warm(second(rpu)))),
        ],
        _ => panic!("add rules of `{short}`"),
    }
}

impl Case {
    /// A rule with the first quota, then the second one; and a plan with the third one.
    fn new(short: &str, place: Place, wall: Micros, quotas: [Quota; 3], keeps_used: bool) -> Case {
        let entry = entry(short).expect("an algorithm of the registry");
        let share = if place == Place::Share { 2 } else { 1 };
        let [own, next, plan] = quotas.map(|quota| Quota {
            burst: quota.burst.map(|burst| burst * share),
            max_queue: quota.max_queue.map(|queue| queue * share),
            rpu: quota.rpu * share,
            ..quota
        });
        let spec = |own: Quota| spec(entry, own, plan, place, keeps_used);
        // Other configurations have room for more callers.
        let specs = [spec(own), CounterSpec { keys: 64, ..spec(next) }];
        let quotas = [&specs[0], &specs[1]].map(|spec| [spec.quota, spec.under(1).quota]);
        let holds = (entry.capabilities)(&own).holds;
        Case {
            oracle: oracle(short),
            quotas,
            specs,
            start: Now { mono: DAY, wall },
            is_queue: holds || own.warm_up.is_some(),
            leaves: (entry.capabilities)(&own).queues,
            is_busy: false,
            is_crowded: false,
        }
    }

    /// Rules of one kind differ in their numbers only.
    pub fn kind(&self) -> impl PartialEq + use<> {
        let is_warm = self.quotas[0][0].warm_up.is_some();
        (self.specs[0].entry.short, self.specs[0].keeps_used, self.is_queue, self.leaves, is_warm)
    }

    /// Whether a trace of few requests can reach the bound: not while a bucket warms up.
    pub fn is_tight(&self) -> bool {
        self.quotas[0][0].warm_up.is_none()
    }

    /// Whether the costs of requests are settled.
    pub fn settles(&self) -> bool {
        self.specs[0].settles
    }
}

/// A rule of requests in flight.
pub fn in_flight(limit: u64) -> CounterSpec {
    let quota = Quota::new(Unit::Second, limit);
    CounterSpec {
        fingerprint: 7,
        keys: 8,
        lines: lines(1),
        may_be_cancelled: true,
        settles: true,
        ..CounterSpec::new(IN_FLIGHT, quota, false).expect("a limit")
    }
}

fn spec(
    entry: &'static Entry,
    own: Quota,
    plan: Quota,
    place: Place,
    keeps_used: bool,
) -> CounterSpec {
    let rates = [own.rpu, plan.rpu];
    let (slowest, fastest) =
        (rates.into_iter().filter(|rpu| *rpu > 0).min(), rates.into_iter().max());
    let with = |quota: Quota| Quota { slowest, fastest, longest: 10 * quota.period(), ..quota };
    let (own, plan) = (with(own), with(plan));
    let plans = Plans {
        own,
        kind: PlanKind::Listed {
            by: None,
            of: vec![Plan { name: "plan".into(), quota: Some(plan), until: None }],
            is_other_unlimited: false,
        },
        month_starts: None,
    };
    let capabilities = (entry.capabilities)(&own);
    let spec = CounterSpec {
        settles: capabilities.settles,
        plans: Some(Arc::new(plans)),
        is_share: place == Place::Share && !capabilities.holds,
        unit_cost: if capabilities.leasing == Leasing::Never { 3 } else { 1 },
        fingerprint: 7,
        keys: 8,
        lines: lines(1),
        may_be_cancelled: capabilities.settles,
        ..CounterSpec::new(entry, own, keeps_used).expect("a rule that means something")
    };
    if place == Place::Share { spec.share(2) } else { spec }
}
