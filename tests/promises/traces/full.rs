//! Two callers that find no room beside others: they share a bucket, and have the usage of both until it ends, also when one of
//! them gets room. None is admitted beyond its own limit, and none is refused who fits beside the other.

use std::cell::Cell;
use std::rc::Rc;

use diana_policy::decision::{Decision, Retry};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::{DAY, Micros, Now, SECOND};
use diana_store::reclaimer::SlotReclaimer;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Reservation};
use kit::choices::Choices;
use kit::fake::FakeSharedData;
use kit::oracle::Promise;
use kit::oracle::history::History;
use kit::store::gateway::key;
use kit::store::{Decided, Take, account, ended};

use super::case::{Case, Place, cases, in_flight};
use super::world::{FAR, Opened, new_rule, open};

/// Buckets of a rule.
const BUCKETS: u64 = 1024;

const COSTS: [u64; 2] = [1, 2];

#[derive(Debug, Clone, Copy)]
enum Event {
    Ask {
        caller: usize,
        cost: u64,
    },
    /// The latest request does not proceed.
    Cancel,
    Wait(Micros),
}

/// The latest request, as long as its instant lasts: its caller, its worker, and its charges alone and of both.
struct Latest {
    caller: usize,
    worker: usize,
    reservation: Reservation,
    charges: [usize; 2],
}

/// One rule of each algorithm.
pub fn full_cases(place: Place) -> Vec<Case> {
    let mut cases = cases(place);
    cases.dedup_by_key(|case| case.specs[0].entry.short);
    cases
}

/// Callers with the same bucket, and their usage.
pub struct Pair {
    keys: [Key; 2],
    alone: [History; 2],
    both: History,
}

pub struct Full<'c> {
    case: &'c Case,
    place: Place,
    stores: Vec<Opened>,
    now: Now,
    pair: Pair,
    /// The usage of each other caller.
    other: History,
    latest: Option<Latest>,
    /// Whether a worker may remember a refusal from before a charge came back.
    may_be_old: bool,
    events: usize,
    /// Another worker, without this rule, clears its values that are over before each event.
    clears: bool,
    data: Rc<FakeSharedData>,
    fingerprint: u64,
}

/// Callers with the same bucket, in tables and in shared data.
pub fn pair(place: Place) -> [Key; 2] {
    let bucket = |key: Key| {
        let hash = if place == Place::Slots { key.hash } else { key.second_hash };
        hash % BUCKETS
    };
    let first = key(0);
    let second = (100_000..).map(key).find(|other| bucket(*other) == bucket(first));
    [first, second.expect("one of some thousands")]
}

impl Full<'_> {
    pub fn new(case: &Case, place: Place, keys: [Key; 2], clears: bool) -> Full<'_> {
        let (data, mut tables) =
            (Rc::<FakeSharedData>::default(), [(); 2].map(|()| Tables::default()));
        let spec = CounterSpec { keys: 1, fingerprint: new_rule(), ..case.specs[0].clone() };
        let tables = tables.iter_mut().take(place.workers());
        let open = |tables| open(place, &spec, "promises", (&data, tables), FAR);
        let stores = tables.map(open).collect();
        let pair = Pair { keys, alone: Default::default(), both: History::default() };
        let (now, other, fingerprint) = (case.start, History::default(), spec.fingerprint);
        let (latest, may_be_old, events) = (None, false, 0);
        let mut full = Full {
            case,
            place,
            stores,
            now,
            pair,
            other,
            latest,
            may_be_old,
            events,
            clears,
            data,
            fingerprint,
        };
        // There is room for twice as many as a slot is made for.
        let others = if place == Place::Slots { 32 } else { 1 };
        for other in 1..=others {
            let mut store = full.stores[0].borrow_mut();
            let mut request = store.checked(account(key(other), 0), 1, full.now);
            assert!(!request.is_overflow && store.charged(&mut request, 0).is_admitted());
        }
        full.other.charge(&case.quotas[0][0], full.now, 0, 1);
        full
    }

    /// The next event.
    pub fn step(&mut self, choices: &mut Choices) {
        if self.clears {
            self.clear();
        }
        let Full { case, ref pair, ref other, now, .. } = *self;
        let mut events = Vec::new();
        // At first the callers are equal.
        for caller in 0..if self.events == 0 { 1 } else { 2 } {
            events.extend(COSTS.map(|cost| Event::Ask { caller, cost }));
        }
        events.extend(self.latest.is_some().then_some(Event::Cancel));
        let quota = &case.quotas[0][0];
        let edges = [&pair.both, other].map(|it| it.edges(case.oracle, quota, now, &COSTS));
        let mut waits: Vec<_> =
            edges.into_iter().flatten().flat_map(|edge| [edge - 1, edge]).collect();
        waits.sort_unstable();
        waits.dedup();
        events.extend(waits.into_iter().filter(|ticks| *ticks > 0).map(Event::Wait));
        match events[choices.pick(events.len())] {
            Event::Ask { caller, cost } => self.ask(caller, cost),
            Event::Cancel => self.cancel(),
            Event::Wait(ticks) => (self.now, self.latest) = (now.later(ticks), None),
        }
        self.events += 1;
    }

    fn ask(&mut self, caller: usize, cost: u64) {
        let Full { case, place, now, .. } = *self;
        let (oracle, quota) = (case.oracle, &case.quotas[0][0]);
        let worker = self.events % place.workers();
        let mut store = self.stores[worker].borrow_mut();
        let Pair { keys, alone, both } = &mut self.pair;
        let mut request = store.checked(account(keys[caller], 0), cost, now);
        let decision = request.decision();
        let least = alone[caller].promise(oracle, quota, now, cost);
        let most = both.promise(oracle, quota, now, cost);
        match decision {
            Decision::Admit { wait } => {
                let is_late = matches!(most, Promise::Admitted { wait: most } if wait > most);
                let is_early = match least {
                    Promise::Admitted { wait: least } => wait < least,
                    Promise::Refused => true,
                    Promise::Either => false,
                };
                assert!(!is_early && !is_late, "admitted after {wait}, but {least:?}, {most:?}");
                assert_eq!(store.charged(&mut request, wait), decision, "nobody was faster");
                let charges =
                    [&mut alone[caller], both].map(|it| it.charge(quota, now, wait, cost));
                self.latest = Some(Latest { caller, worker, reservation: request, charges });
            }
            Decision::Refuse { retry } => {
                let fits = matches!(most, Promise::Admitted { .. });
                assert!(self.may_be_old || !fits, "refused, but {most:?}");
                // A worker may remember a refusal that was earlier than the latest charge.
                if let Retry::After(ticks) = retry
                    && !place.remembers()
                {
                    let later = alone[caller].promise(oracle, quota, now.later(ticks), cost);
                    assert_ne!(later, Promise::Refused, "{ticks} is too early");
                }
            }
        }
    }

    /// As if the rule had been removed long ago.
    fn clear(&self) {
        let (data, algorithm) = (self.data.clone(), self.case.specs[0].algorithm.clone());
        let namespace = "promises".into();
        SlotReclaimer::of_callers(namespace, data, self.fingerprint, algorithm, 0).work(self.now);
    }

    fn cancel(&mut self) {
        let Some(mut latest) = self.latest.take() else { return };
        self.stores[latest.worker].borrow_mut().cancel(&mut latest.reservation);
        self.may_be_old = self.place.remembers();
        let Pair { alone, both, .. } = &mut self.pair;
        let [own, of_both] = latest.charges;
        alone[latest.caller].cancel(own);
        both.cancel(of_both);
    }
}

/// Requests in flight of two callers with one bucket, and of one that may have the only row. Each of them begins a request or ends
/// its own. One is refused only while another one of its bucket has a request, and in the end each can begin one.
pub fn requests_in_flight(place: Place, keys: [Key; 2], events: usize, choices: &mut Choices) {
    let (data, mut tables) = (Rc::<FakeSharedData>::default(), Tables::default());
    let spec = CounterSpec { keys: 1, fingerprint: new_rule(), ..in_flight(1) };
    let store = open(place, &spec, "promises", (&data, &mut tables), FAR);
    // Others leave room for one in a slot of shared data, in which all that find none have a bucket.
    let others = if place == Place::Slots { 31 } else { 0 };
    let callers: Vec<Key> =
        [key(1), keys[0], keys[1]].into_iter().chain((2..).map(key).take(others)).collect();
    let now = Cell::new(Now { mono: DAY, wall: DAY });
    let mut open: Vec<Option<Reservation>> = callers.iter().map(|_| None).collect();
    let act = |open: &mut [Option<Reservation>], caller: usize| {
        let mut store = store.borrow_mut();
        // A full table looks for room again after a while.
        let now = now.replace(now.get().later(SECOND));
        store.maintain(now);
        if let Some(request) = open[caller].take() {
            let since = request.now.mono;
            let settlement = Settlement { receipt: 0, since, reserved: 1, used: 0 };
            return assert!(store.settle(&ended(request.account, &settlement), now), "it ends");
        }
        let mut request = store.checked(account(callers[caller], 0), 1, now);
        let is_in = request.is_admitted() && store.charged(&mut request, 0).is_admitted();
        let beside = if place == Place::Slots { vec![0, 1, 2, 3] } else { vec![1, 2] };
        let is_beside = beside.contains(&caller)
            && beside.iter().any(|other| *other != caller && open[*other].is_some());
        assert!(is_in || is_beside, "refused while its slot is free");
        open[caller] = Some(request).filter(|_| is_in);
    };
    (3..callers.len()).for_each(|other| act(&mut open, other));
    // In a slot of shared data one of the others may leave, too, and callers ask once more.
    let acts = if place == Place::Slots { 7 } else { 3 };
    for _ in 0..events {
        match choices.pick(acts) {
            caller @ 0..4 => act(&mut open, caller),
            again if open[again - 4].is_some() => {
                let mut store = store.borrow_mut();
                let account = account(callers[again - 4], 0);
                let mut request = store.checked(account, 1, now.get());
                let is_in = request.is_admitted() && store.charged(&mut request, 0).is_admitted();
                assert!(!is_in, "admitted beyond the limit");
            }
            _ => {}
        }
    }
    for caller in 0..callers.len() {
        if open[caller].is_some() {
            act(&mut open, caller);
        }
    }
    // Each begins one, and ends it.
    for caller in [0, 0, 1, 1, 2, 2] {
        act(&mut open, caller);
    }
}
