//! Requests in flight where all gateways count together.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Fleet, gateway};
use crate::harness::{Centre, Client, Says, Upstream, eventually};
use crate::in_flight::{AGAIN, LIMIT, counting, fill, hang, play, rules};

/// Longer than an answer takes on a busy machine: a gateway that goes alone lets its own part in, too.
const TIMEOUT: u64 = 900_000;

/// By which the gateways come together.
const TOGETHER: &str = "
  - {Url: /together, rules: [{actor: all, unit: day, rpu: 1000000, scope: global}]}";

fn start(service: &Upstream) -> Fleet {
    let rules = rules("global") + TOGETHER;
    let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(service));
    fleet.comes_together("/together");
    fleet
}

#[test]
fn twenty_at_a_time_of_hundreds_and_never_one_more() {
    let fleet = start(&counting());
    play(&fleet.envoys, 1, Duration::from_millis(50));
    fleet.assert_unharmed();
}

/// Long requests keep their places, and those of a gateway that was killed are free within two seconds.
#[test]
fn the_places_of_a_gateway_that_died_are_free_again() {
    let service = Upstream::answering(hang);
    let Fleet { envoys, redis, wires } = start(&service);
    let mut envoys = Arc::into_inner(envoys).unwrap();
    let last = envoys.pop().unwrap();
    let held = fill(&last);
    assert_eq!(held.len(), LIMIT);
    thread::sleep(2 * AGAIN);
    assert_eq!(fill(&envoys[0]).len(), 0, "they are still in flight");
    drop(last);
    thread::sleep(AGAIN);
    let one = fill(&envoys[0]);
    assert_eq!(one.len(), LIMIT, "{}", envoys[0].log());
    assert_eq!(fill(&envoys[1]).len(), 0);
    one.into_iter().for_each(Client::reset);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(fill(&envoys[1]).len(), LIMIT);
    drop((redis, wires));
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
        gateway(TIMEOUT, &own, redis).before(&service).cluster("centre", centre.port)
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
