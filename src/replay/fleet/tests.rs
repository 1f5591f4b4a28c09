//! Requests of made-up callers, replayed through fleets of several sizes.

use std::collections::BTreeMap;
use std::rc::Rc;

use diana_config::Reader;
use diana_policy::Metric;
use diana_policy::time::{Micros, SECOND};

use super::ReplayFleet;
use crate::{PlainRequest, ReplayDecision};

/// Tuesday, 24 November 2026, 06:00:00 UTC.
const BEGIN: Micros = 1_795_500_000 * SECOND;

const MILLISECOND: Micros = SECOND / 1000;

/// A request of an account, at milliseconds since the beginning, which takes a number of
/// milliseconds.
fn request(at: u64, account: u64, took: u64) -> Rc<PlainRequest> {
    Rc::new(PlainRequest {
        at: BEGIN + at * MILLISECOND,
        took: took * MILLISECOND,
        status: 200,
        address: None,
        host: None,
        method: "GET".into(),
        path: "/".into(),
        headers: vec![("x-account-id".into(), format!("account-{account}"))],
        route: None,
    })
}

/// A fleet with one limit that has these rules.
fn fleet(rules: &str, gateways: usize, workers: usize) -> ReplayFleet<PlainRequest> {
    let text = format!("limits: [{{Url: /, rules: [{rules}]}}]");
    let policy = Reader::default().policy(text.as_bytes()).unwrap();
    ReplayFleet::new(&policy, gateways, workers).unwrap()
}

/// The decisions about requests: `Some` is a wait in milliseconds, `None` a refusal.
fn waits(rules: &str, requests: &[Rc<PlainRequest>]) -> Vec<Option<u64>> {
    let mut fleet = fleet(rules, 1, 1);
    let wait = |decision| match decision {
        ReplayDecision::Admitted => Some(0),
        ReplayDecision::Held { wait, .. } => Some(wait / MILLISECOND),
        ReplayDecision::Refused(_) => None,
    };
    requests.iter().map(|request| wait(fleet.request(request))).collect()
}

/// How many of 400 requests within 40 s three gateways of two workers admit.
fn admitted(rule: &str) -> u64 {
    let mut fleet = fleet(&format!("{{name: it, actor: account, {rule}}}"), 3, 2);
    let admitted = (0..400)
        .filter(|number| !fleet.request(&request(number * 100, 1, 1)).is_refused())
        .count() as u64;
    let mut counts = BTreeMap::new();
    fleet.take_counts(|rule, metric, count| {
        assert_eq!(rule, "it");
        counts.insert(metric, count.cast_unsigned());
    });
    assert_eq!((counts[&Metric::Allowed], counts[&Metric::Refused]), (admitted, 400 - admitted));
    admitted
}

#[test]
fn rule_counts_per_worker_gateway_or_fleet() {
    for algo in ["W", "SW"] {
        let admitted =
            |scope: &str| admitted(&format!("unit: hour, rpu: 7, algo: {algo}, scope: {scope}"));
        assert_eq!(["local", "gateway", "global"].map(admitted), [42, 21, 7], "{algo}");
    }
}

#[test]
fn bucket_leases_permits_to_workers() {
    assert_eq!(admitted("unit: hour, rpu: 1, burst: 100, algo: TB, scope: global"), 100);
    assert_eq!(admitted("unit: hour, rpu: 1, burst: 100, algo: TB, scope: gateway"), 300);
}

#[test]
fn same_requests_have_same_decisions() {
    let replay = || {
        let mut fleet = fleet("{name: it, actor: account, unit: second, rpu: 3, algo: TB}", 2, 3);
        let decision = |number: u64| fleet.request(&request(number * 7, number % 5, 1));
        (0..2000).map(decision).map(|decision| decision.is_refused()).collect::<Vec<_>>()
    };
    assert_eq!(replay(), replay());
}

#[test]
fn request_is_in_flight_until_its_stream_ends() {
    // At 0, 100, 200, …, and each takes 250: every third request meets two earlier ones.
    let requests: Vec<_> = (0..9).map(|number| request(number * 100, 1, 250)).collect();
    let expected = [Some(0), Some(0), None].repeat(3);
    assert_eq!(waits("{actor: account, in_flight: 2}", &requests), expected);
}

#[test]
fn held_request_waits_for_its_turn() {
    let requests: Vec<_> = (0..4).map(|number| request(number * 100, 1, 1)).collect();
    let rule = "{actor: account, unit: second, rpu: 2, algo: LB, max_delay: 1s}";
    assert_eq!(waits(rule, &requests), [Some(0), Some(400), Some(800), None]);
}

#[test]
fn held_request_is_in_flight_until_its_stream_ends() {
    let rules = "{actor: account, unit: second, rpu: 2, algo: LB, max_delay: 1s}, \
                 {actor: account, in_flight: 1}";
    // The second request waits until 1000 and ends at 1100.
    let requests = [(500, 10), (550, 100), (1_050, 10), (1_150, 10)];
    let requests = requests.map(|(at, took)| request(at, 1, took));
    assert_eq!(waits(rules, &requests), [Some(0), Some(450), None, Some(350)]);
}

#[test]
fn many_held_requests_are_admitted_at_once() {
    // One tick of a worker resumes 32 requests, and all 100 end before the next ones arrive.
    let rules = "{actor: account, unit: second, rpu: 1, algo: LB, max_delay: 1s}, \
                 {actor: all, in_flight: 200}";
    let round = |at: u64| (0..200).map(move |number| request(at, number % 100, 10));
    let requests: Vec<_> = round(0).chain(round(10_000)).collect();
    let mut expected = [vec![Some(0); 100], vec![Some(1000); 100]].concat();
    expected.extend_from_within(..);
    assert_eq!(waits(rules, &requests), expected);
}

#[test]
fn operator_request_counts_under_no_rule() {
    let text = "admin: {path: /admin, token_env: TOKEN}
limits: [{Url: /, rules: [{actor: all, unit: hour, rpu: 1, algo: W}]}]";
    let policy = Reader::default().policy(text.as_bytes()).unwrap();
    let mut fleet = ReplayFleet::new(&policy, 1, 1).unwrap();
    let decide = |path: &str| {
        let request =
            PlainRequest { path: path.into(), ..Rc::into_inner(request(0, 1, 1)).unwrap() };
        fleet.request(&Rc::new(request)).is_refused()
    };
    assert_eq!(
        ["/admin/rules", "/a", "/admin/rules", "/a"].map(decide),
        [false, false, false, true]
    );
}
