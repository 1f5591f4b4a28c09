//! What each kind of request costs: accepted and refused, under one rule and under three, in this worker
//! and in the gateway.

use super::SECOND;
use crate::host::Host;
use crate::host::answer::Answer;
use crate::host::request::Request;

/// A kind of request: its rules, how many like it came before, how far apart, and the most fuel that it
/// may take, which lies a third above what was measured.
struct Kind {
    what: &'static str,
    rules: String,
    before: usize,
    apart: u64,
    refused: bool,
    most: u64,
}

fn rule(scope: &str, algo: &str, rpu: u64, more: &str) -> String {
    format!("{{actor: device, unit: minute, rpu: {rpu}, algo: {algo}, scope: {scope}{more}}}")
}

fn one(scope: &str, rpu: u64) -> String {
    rule(scope, "TB", rpu, "")
}

/// Three rules of one algorithm each, of which the last one refuses.
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
        kind("local, 1 rule, accepted", one("local", MANY), 3, MS, 16_500),
        kind("local, 1 rule, refused", one("local", 2), 9, MS, 119_700),
        kind("local, 3 rules, accepted", three("local", MANY), 3, MS, 30_700),
        kind("local, 3 rules, refused", three("local", 2), 9, MS, 147_500),
        kind("local, 1 rule with hot, accepted", rule("local", "TB", MANY, HOT), 3, MS, 16_700),
        kind("local, 1 rule with hot, refused", rule("local", "TB", 2, HOT), 9, MS, 113_700),
        kind("local, 1 rule with ban, accepted", rule("local", "TB", MANY, BAN), 3, MS, 16_600),
        kind("local, 1 rule with ban, refused", rule("local", "TB", 2, BAN), 3, MS, 112_300),
        kind("local, 1 rule with ban, refused by it", rule("local", "TB", 2, BAN), 9, MS, 103_400),
        kind("gateway, 1 rule, accepted, asks", one("gateway", MANY), 9, SECOND / 5, 34_400),
        kind("gateway, 1 rule, accepted, leased", one("gateway", MANY), 101, MS, 16_700),
        kind("gateway, 1 rule, refused, asks", one("gateway", 2), 2, MS, 133_700),
        kind("gateway, 1 rule, refused, remembered", one("gateway", 2), 9, MS, 113_300),
        kind("gateway, 3 rules, accepted, asks", three("gateway", MANY), 9, SECOND / 5, 74_200),
        kind("gateway, 3 rules, accepted, leased", three("gateway", MANY), 101, MS, 30_800),
        kind("gateway, 3 rules, refused, asks", three("gateway", 2), 2, MS, 168_600),
        kind("gateway, 3 rules, refused, remembered", three("gateway", 2), 9, MS, 173_600),
    ]
}

/// The answer to a request after so many others like it.
fn answer(kind: &Kind) -> Answer {
    let config = format!("limits: [{{Url: /, rules: [{}]}}]", kind.rules);
    let mut host = Host::new(1);
    let mut vm = host.start_vm(&config).unwrap_or_else(|error| panic!("{config}\n{error}"));
    let request = Request::get("/").header("x-device-id", "5e1c9e0a-6f6b-4b1e-9a55-0d8f0c7c2f11");
    for _ in 0..kind.before {
        vm.request(&request);
        vm.run(kind.apart);
    }
    vm.request(&request)
}

#[test]
fn fuel_per_kind_of_request() {
    let mut over = Vec::new();
    for kind in kinds() {
        let answer = answer(&kind);
        assert_eq!(answer.is_refused(), kind.refused, "{}: {answer:?}", kind.what);
        let calls: Vec<String> =
            answer.calls.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("{}: {} of {}; {}", kind.what, answer.fuel, kind.most, calls.join(", "));
        if answer.fuel > kind.most {
            over.push(kind.what);
        }
    }
    assert!(over.is_empty(), "{over:?}");
}
