//! Requests that contain their cost.

use std::rc::Rc;

use diana_policy::time::SECOND;
use diana_policy::tree::Tree;
use diana_policy::{CostSource, IdentitySource, NumberForm, NumberSource};
use diana_request::cost::CostReader;
use fastrand::Rng;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use serde_yaml::Mapping;

use crate::config::policy;
use crate::support::documents::{assert_outcomes, outcome};
use crate::support::steps;

/// A document has a `cost`, each step a request. The transcript has its cost.
#[test]
fn costs_match_their_transcripts() {
    assert_outcomes(concat!(env!("CARGO_MANIFEST_DIR"), "/it/features/cost"), |_, _, text| {
        let (cost, steps) = steps::split(text);
        let rule = format!("{{actor: all, unit: day, rpu: 1000, cost: {cost}}}");
        let policy = policy(&format!("limits: [{{Url: /, rules: [{rule}]}}]"));
        let rule = &policy.limits[0].rules[0];
        let cost_reader =
            CostReader::new(rule.cost_source.as_ref().unwrap(), rule.quota.cost).unwrap();
        let cost = |keys: &Mapping| cost_reader.cost(&steps::request(keys));
        steps.iter().map(|(line, keys)| outcome(line, &cost(keys).to_string())).collect()
    });
}

#[test]
fn cost_that_is_no_text_is_the_default() {
    let source =
        IdentitySource { kind: "header", value: Tree::Text("x-cost".into()), options: Vec::new() };
    let number = NumberSource { source, form: NumberForm::Text { typed: false }, default: 7 };
    let cost_reader = CostReader::new(&CostSource::Number(number), 1000).unwrap();
    assert_eq!(cost_reader.cost(&FakeRequest::get("/").header("x-cost", [0xff, 0x31])), 7);
}

/// For any values, a caller gets exactly the permits that fit, at the cost of an oracle that knows
/// only the list.
#[test]
fn requests_are_admitted_while_the_cost_of_their_value_fits() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let sources = [
        "{header: x-op}",
        "[{header: x-op}]",
        "{metadata: [ns, op]}",
        "[{metadata: [ns, op]}, {cookie: op}]",
    ];
    let values = ["a", "b", "C", "d e", "unlisted", ""];
    for round in 0..40 {
        let by = sources[rng.usize(0..sources.len())];
        let listed = values[..4].iter().map(|value| (*value, rng.u64(1..120)));
        let of: Vec<(&str, u64)> = listed.filter(|(_, cost)| *cost < 60).collect();
        let of = if of.is_empty() { vec![("a", 3)] } else { of };
        let default = rng.u64(1..60);
        let listed: Vec<String> =
            of.iter().map(|(value, cost)| format!("'{value}': {cost}")).collect();
        let (algo, scope) =
            [("W", "local"), ("W", "gateway"), ("TB", "local"), ("TB", "gateway")][round % 4];
        let text = format!(
            "limits: [{{Url: /, rules: [{{name: own, actor: device, unit: day, rpu: 500, algo: {algo}, scope: {scope}, \
             cost: {{by: {by}, of: {{{}}}, default: {default}}}}}, {{actor: all, unit: day, rpu: 100000}}]}}]",
            listed.join(", ")
        );
        let mut limiter = crate::limiter::limiter(&text, Rc::new(FakeSharedData::default()));
        let (clock, mut used) = (FakeClock::default(), 0);
        for _ in 0..60 {
            let value = values[rng.usize(0..values.len())];
            let request = FakeRequest::get("/").from("192.0.2.1:4000");
            let is_header = by.contains("header");
            let is_twice = is_header && rng.u8(0..9) == 0;
            let request = match (is_header, is_twice) {
                (true, true) => request.header("x-op", value).header("x-op", "a"),
                (true, false) => request.header("x-op", value),
                (false, _) => request.property(&["metadata", "filter_metadata", "ns", "op"], value),
            };
            let most = of.iter().map(|(_, cost)| *cost).chain([default]).max().unwrap();
            let known = of.iter().find(|(name, _)| *name == value).map(|(_, cost)| *cost);
            let cost = if is_twice { most } else { known.unwrap_or(default) };
            let fits = used + cost <= 500;
            let verdict = limiter.decide(&request, 0, &clock);
            assert_eq!(verdict.is_pass(), fits, "{value} for {cost} with {used} used: {text}");
            used += if fits { cost } else { 0 };
            let now = clock.0.get();
            // Rare enough to avoid leases.
            clock.0.set(now.later(rng.u64(SECOND / 100..SECOND / 50)));
        }
    }
}

/// The estimate of a busy caller's demand.
#[test]
fn usual_cost_is_the_default() {
    let usual = |cost: &str| {
        let document = format!(
            "limits: [{{Url: /, rules: [{{actor: all, rpu: 100, unit: day, cost: {cost}}}]}}]"
        );
        let policy = crate::config::policy(&document);
        policy.limits[0].rules[0].usual_cost()
    };
    assert_eq!(usual("4"), 4);
    assert_eq!(usual("{header: x-cost, default: 3, max: 9}"), 3);
    assert_eq!(usual("{by: {header: x}, of: {a: 30}, default: 3}"), 3);
}
