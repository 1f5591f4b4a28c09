//! Requests in flight where all gateways count together.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::modes::{Alone, Modes, alone_within, without_cause};
use super::{Fleet, GATEWAYS, gateway};
use crate::harness::{
    Centre, Client, Clock, Complaint, NO_EXCUSE, Says, Upstream, alone, eventually,
    try_until_undisturbed,
};
use crate::load::in_flight::{AGAIN, LIMIT, counting, fill, hang, play, rules};

const TIMEOUT: u64 = 250_000;

/// Longer than an answer takes on a busy machine.
const PATIENT: u64 = 900_000;

/// By which the gateways come together.
const TOGETHER: &str = "
  - {Url: /together, rules: [{actor: all, unit: day, rpu: 1000000, scope: global}]}";

fn start(service: &Upstream) -> Fleet {
    let rules = rules("global") + TOGETHER;
    let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(service));
    fleet.comes_together("/together");
    fleet
}

/// How many were in flight at once by an instant, of how many.
struct Open {
    count: usize,
    limit: usize,
    by: u64,
}

impl Open {
    /// At most the limit, and a part of it for each of so many gateways that says that it was alone until then: what it
    /// lets in by itself comes on top of what Redis has granted it.
    #[track_caller]
    fn assert_bound(&self, gateways: usize, alone: &[Alone]) {
        let Open { count, limit, by } = *self;
        let parts = limit.div_ceil(gateways) * alone_within(alone, &(0..by)) as usize;
        assert!(count <= limit + parts, "{count} of {limit} + {parts} in flight; {NO_EXCUSE}");
    }

    /// The same, and not one less if none was alone.
    #[track_caller]
    fn assert_all(&self, gateways: usize, alone: &[Alone]) {
        self.assert_bound(gateways, alone);
        let is_all = self.count >= self.limit || alone_within(alone, &(0..self.by)) > 0;
        assert!(is_all, "{} of {} in flight", self.count, self.limit);
    }
}

#[test]
fn twenty_at_a_time_of_hundreds_and_never_one_more() {
    let fleet = start(&counting());
    let (modes, clock) = (Modes::watch(&fleet.envoys), Clock::new());
    let count = play(&fleet.envoys, 1, Duration::from_millis(50));
    let most = Open { count, limit: LIMIT, by: clock.now() };
    most.assert_bound(GATEWAYS, &modes.end());
    fleet.assert_unharmed();
}

/// Long requests keep their places, and those of a gateway that was killed are free within two seconds.
#[test]
fn the_places_of_a_gateway_that_died_are_free_again() {
    alone();
    try_until_undisturbed("a gateway died", || ((), lose_a_gateway()));
}

/// Whoever was alone meanwhile without a cause.
#[track_caller]
fn lose_a_gateway() -> Vec<Complaint> {
    let (service, clock) = (Upstream::answering(hang), Clock::new());
    let open = |count| Open { count, limit: LIMIT, by: clock.now() };
    let Fleet { envoys, redis, wires } = start(&service);
    let modes = Modes::watch(&envoys);
    let held = fill(&envoys[GATEWAYS - 1]);
    let first = open(held.len());
    thread::sleep(2 * AGAIN);
    // They are still in flight.
    let still = open(held.len() + fill(&envoys[0]).len());
    let before = modes.end();
    [first, still].iter().for_each(|open| open.assert_all(GATEWAYS, &before));

    let mut envoys = Arc::into_inner(envoys).unwrap();
    drop(envoys.pop());
    let envoys = Arc::new(envoys);
    let modes = Modes::watch(&envoys);
    thread::sleep(AGAIN);
    let one = fill(&envoys[0]);
    let again = open(one.len());
    let both = open(one.len() + fill(&envoys[1]).len());
    one.into_iter().for_each(Client::reset);
    thread::sleep(Duration::from_millis(300));
    let other = open(fill(&envoys[1]).len());
    let after = modes.end();
    [again, both, other].iter().for_each(|open| open.assert_all(envoys.len(), &after));
    drop((held, redis, wires));
    without_cause(before.iter().chain(&after), TIMEOUT)
}

/// Who is under way keeps its place, though a configuration centre has replaced the rules that it came by.
#[test]
fn places_outlive_rules_that_a_centre_replaces() {
    const MORE: usize = LIMIT + 2;
    let service = Upstream::answering(hang);
    let limits =
        |limit: usize| rules("global").replace(&LIMIT.to_string(), &limit.to_string()) + TOGETHER;
    let centre = Centre::start(Says::Text(limits(LIMIT)));
    let remote = "remote: {cluster: centre, path: /rules.yaml, every: 1s, timeout: 1s}";
    let own = format!("{remote}\n{}", limits(LIMIT));
    let fleet = Fleet::start_with(|redis, _| {
        gateway(PATIENT, &own, redis).before(&service).cluster("centre", centre.port)
    });
    fleet.comes_together("/together");
    let mut open = fill(&fleet.envoys[0]);
    assert_eq!(open.len(), LIMIT);
    centre.say(Says::Text(limits(MORE)));
    eventually("the new limit", || {
        open.extend(fleet.envoys.iter().flat_map(fill));
        assert!(open.len() <= MORE, "{} of {MORE}", open.len());
        (open.len() == MORE).then_some(())
    });
    thread::sleep(2 * AGAIN);
    for envoy in &*fleet.envoys {
        assert_eq!(fill(envoy).len(), 0, "they are still in flight");
    }
    open.drain(..).for_each(Client::reset);
    eventually("all places", || {
        open.extend(fill(&fleet.envoys[2]));
        (open.len() == MORE).then_some(())
    });
    fleet.assert_unharmed();
}
