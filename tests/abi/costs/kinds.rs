//! The cost of each kind of request: accepted and refused, under one rule and under three, in
//! scopes `local` and `gateway`.

use std::collections::BTreeMap;

use super::SECOND;
use host::Host;
use host::answer::Answer;
use host::request::Request;

/// A kind of request: its rules, the number and distance of equal requests before it, and its
/// maximum fuel, a tenth above the measured value.
struct Kind {
    what: &'static str,
    rules: String,
    before: usize,
    apart: u64,
    refused: bool,
    most: u64,
}

/// The cost of an allocation depends on earlier ones, so several callers are measured.
const CALLERS: usize = 25;

fn rule(scope: &str, algo: &str, rpu: u64, more: &str) -> String {
    format!("{{actor: device, unit: minute, rpu: {rpu}, algo: {algo}, scope: {scope}{more}}}")
}

fn one(scope: &str, rpu: u64) -> String {
    rule(scope, "TB", rpu, "")
}

/// Three rules with one algorithm each. The last one refuses.
fn three(scope: &str, rpu: u64) -> String {
    let generous = ["W", "SW"].map(|algo| rule(scope, algo, 1_000_000, ""));
    format!("{}, {}", generous.join(", "), one(scope, rpu))
}

fn kind(what: &'static str, rules: String, before: usize, apart: u64, most: u64) -> Kind {
    Kind { what, rules, before, apart, refused: what.contains("refused"), most }
}

fn kinds() -> Vec<Kind> {
    const HOT: &str = ", hot: {over: 1000000, per: 10s}";
    const BAN: &str = ", ban: {after: 3, within: 1m, for: 1m, max: 1h}";
    const MANY: u64 = 1_000_000;
    const MS: u64 = SECOND / 1_000;
    vec![
        kind("local, 1 rule, accepted", one("local", MANY), 3, MS, 13_600),
        kind("local, 1 rule, refused", one("local", 2), 9, MS, 36_300),
        kind("local, 3 rules, accepted", three("local", MANY), 3, MS, 20_600),
        kind("local, 3 rules, refused", three("local", 2), 9, MS, 49_400),
        kind("local, 1 rule with hot, accepted", rule("local", "TB", MANY, HOT), 3, MS, 13_700),
        kind("local, 1 rule with hot, refused", rule("local", "TB", 2, HOT), 9, MS, 36_200),
        kind("local, 1 rule with ban, accepted", rule("local", "TB", MANY, BAN), 3, MS, 14_100),
        kind("local, 1 rule with ban, refused", rule("local", "TB", 2, BAN), 3, MS, 52_500),
        kind("local, 1 rule with ban, refused by it", rule("local", "TB", 2, BAN), 9, MS, 34_700),
        kind("gateway, 1 rule, accepted, asks", one("gateway", MANY), 9, SECOND / 5, 21_700),
        kind("gateway, 1 rule, accepted, leased", one("gateway", MANY), 101, MS, 12_900),
        kind("gateway, 1 rule, refused, asks", one("gateway", 2), 2, MS, 40_900),
        kind("gateway, 1 rule, refused, remembered", one("gateway", 2), 9, MS, 34_700),
        kind("gateway, 3 rules, accepted, asks", three("gateway", MANY), 9, SECOND / 5, 42_200),
        kind("gateway, 3 rules, accepted, leased", three("gateway", MANY), 101, MS, 18_400),
        kind("gateway, 3 rules, refused, asks", three("gateway", 2), 2, MS, 62_600),
        kind("gateway, 3 rules, refused, remembered", three("gateway", 2), 9, MS, 57_300),
    ]
}

/// The results of requests of several callers, each after a number of equal ones.
fn answers(kind: &Kind) -> Vec<Answer> {
    let config = format!("limits: [{{Url: /, rules: [{}]}}]", kind.rules);
    let mut host = Host::new(1);
    let mut vm = host.start_vm(&config).unwrap_or_else(|error| panic!("{config}\n{error}"));
    let one = |caller: usize| {
        let device = format!("5e1c9e0a-6f6b-4b1e-9a55-0d8f0c7c{caller:04}");
        let request = Request::get("/").header("x-device-id", device);
        for _ in 0..kind.before {
            vm.request(&request);
            vm.run(kind.apart);
        }
        vm.request(&request)
    };
    (0..CALLERS).map(one).collect()
}

/// The host functions that any of the requests called, with the maximum count.
fn calls(answers: &[Answer]) -> BTreeMap<&'static str, u64> {
    let mut most: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in answers.iter().flat_map(|answer| &answer.calls) {
        let most = most.entry(*name).or_default();
        *most = (*most).max(*count);
    }
    most
}

#[test]
fn fuel_per_kind_of_request() {
    let mut over = Vec::new();
    for kind in kinds() {
        let mut answers = answers(&kind);
        for answer in &answers {
            assert_eq!(answer.is_refused(), kind.refused, "{}: {answer:?}", kind.what);
        }
        let calls = calls(&answers);
        answers.sort_by_key(|answer| answer.fuel);
        let fuel = answers[CALLERS / 2].fuel;
        let (least, most) = (answers[0].fuel, answers[CALLERS - 1].fuel);
        println!("{}: {fuel} of {}; {least} to {most}; {calls:?}", kind.what, kind.most);
        if fuel > kind.most {
            over.push(kind.what);
        }
    }
    assert!(over.is_empty(), "{over:?}");
}
