//! No policy changes a decision about a request of another route.

use diana_compose::{Plane, Platform, Rights, compose};
use diana_limiter::Verdict;
use fastrand::Rng;
use kit::fake::FakeRequest;
use kit::seed;

use super::{namespaces, platform, policy, routes, status};
use crate::limiter::Gate;

/// The platform's rules are about another host than the requests of the attacker.
const PLATFORM: &str = "{limits: [
  {Url: /, match: {hosts: [a.example]}, rules: [
    {name: default, actor: account, unit: day, rpu: 4},
    {name: api, actor: all, unit: day, rpu: 40, scope: local},
    {actor: tenant, unit: minute, rpu: 5, algo: TB}]},
  {Url: /checkout, match: [{hosts: [a.example]}], rules: [{actor: device, unit: hour, rpu: 6, ban: {after: 3, within: 1m, for: 1m}}]}],
  actors: {tenant: [{header: x-tenant}]}, except: {paths: [/healthz]}}";

/// The attacked team's own policy.
const VICTIM: &str = "[{url: /, rules: [{name: checkout, actor: account, unit: day, rpu: 3}, {name: x, actor: tenant, unit: day, rpu: 9}]}]";

const URLS: [&str; 9] = [
    "url: /",
    "url: /checkout",
    "url: '/{a}'",
    "url: /*",
    "url: /%2e%2e/checkout",
    "urls: [/a, /checkout]",
    "url: //",
    "url: /healthz",
    "url: '/{a=**}'",
];
const ENTRIES: [&str; 14] = [
    "",
    "match: []",
    "match: [{}]",
    "match: [{methods: [GET]}, {}]",
    "match: [{hosts: ['*.example']}]",
    "match: [{headers: {x-tenant: {present: true}}}, {hosts: [a.example]}]",
    "match: [{addresses: [0.0.0.0/0]}]",
    "unless: [{methods: [POST]}]",
    "unless: [{hosts: [b.example]}]",
    "except: {paths: [/]}",
    "except: {headers: {x-tenant: {present: true}}}",
    "ignore_case: true",
    "each: true",
    "response: {status: 418, body: hello, fields: x-ratelimit}",
];
const RULES: [&str; 16] = [
    "unit: day, rpu: 0",
    "unit: day, rpu: 1",
    "unit: minute, rpu: 2, algo: TB",
    "unit: minute, rpu: 2, algo: LB",
    "unit: minute, rpu: 2, algo: SW, scope: local",
    "in_flight: 1",
    "unit: day, rpu: 1, replaces: [default]",
    "unit: day, rpu: 100, replaces: [default]",
    "unit: day, rpu: 1, absent: deny",
    "unit: day, rpu: 1, absent: share",
    "unit: day, rpu: 1, shadow: true",
    "unit: day, rpu: 0, ban: {after: 1, within: 1d, for: 1d}",
    "unit: day, rpu: 9, cost_from: {header: x-cost, max: 9}",
    "unit: day, rpu: 1, expose: false",
    "unit: day, rpu: 1, response: {status: 400, problem: true}",
    "unit: day, rpu: 3, except: {paths: [/checkout]}",
];
const NAMES: [&str; 5] = ["api", "default", "checkout", "x", "a_s_b"];
const ACTORS: [&str; 6] = [
    "actor: account",
    "actor: device",
    "actor: address",
    "actor: all",
    "actor: tenant",
    "actors: [account, tenant]",
];
const KEYS: &str = "urls match unless except ignore_case each response actors algo scope in_flight replaces absent shadow ban cost_from \
                    expose burst";

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

/// Entries of an attacker.
fn entries(rng: &mut Rng) -> String {
    let mut number = 0;
    let mut rule = |rng: &mut Rng| {
        number += 1;
        let name = format!("{}-{number}", pick(rng, &NAMES));
        format!("{{name: {name}, {}, {}}}", pick(rng, &ACTORS), pick(rng, &RULES))
    };
    let entry = |rng: &mut Rng, rule: &mut dyn FnMut(&mut Rng) -> String| {
        let rules: Vec<_> = (0..rng.usize(1..4)).map(|_| rule(rng)).collect();
        let more = pick(rng, &ENTRIES);
        let comma = if more.is_empty() { "" } else { ", " };
        format!("{{{}, {more}{comma}rules: [{}]}}", pick(rng, &URLS), rules.join(", "))
    };
    let entries: Vec<_> = (0..rng.usize(1..4)).map(|_| entry(rng, &mut rule)).collect();
    format!("[{}]", entries.join(", "))
}

/// Names of routes that are not of the attacker, but resemble its own.
const OTHERS: [&[&str]; 2] = [
    &[
        "httproute/team-a/shop/rule/0/match/0/a_example",
        "httproute/team-a/cart/rule/0",
        "httproute/team-b/carts/rule/0",
        "httproute/team-b/cart",
        "HTTPRoute/team-b/cart/rule/0",
        "grpcroute/team-b/cart/rule/0",
        "httproute/team-b-cart/rule/0",
        "x/httproute/team-b/cart/rule/0",
        "",
    ],
    &[
        "team-a.shop.0",
        "team-a.shop.1",
        "team-b.cart",
        "team-b.cart.2",
        "team-b.cart.00",
        "team-b.old.cart.0",
        "x.team-b.cart.0",
        "",
    ],
];
const OWN: [&str; 2] = ["httproute/team-b/cart/rule/0/match/0/b_example", "team-b.cart.1"];

fn request(rng: &mut Rng, host: &str, route: &str) -> FakeRequest {
    let path = pick(
        rng,
        &[
            "/",
            "/checkout",
            "/checkout/1",
            "/CHECKOUT",
            "/a",
            "/healthz",
            "//checkout",
            "/%2e%2e/checkout",
        ],
    );
    let mut request = FakeRequest::get(path).from("192.0.2.1:4000");
    request.authority = Some(host.into());
    request.method = Some(pick(rng, &["GET", "POST"]).into());
    for (name, values) in [
        ("x-account-id", ["a", "b"]),
        ("x-device-id", ["d", "e"]),
        ("x-tenant", ["t", "u"]),
        ("x-cost", ["1", "9"]),
    ] {
        if rng.u8(..) < 200 {
            request = request.header(name, pick(rng, &values));
        }
    }
    if route.is_empty() { request } else { request.routed(route) }
}

/// A decision with all that a client sees.
fn decided(gate: &mut Gate, request: &FakeRequest) -> String {
    match gate.decide(request) {
        Verdict::Admit(_, report) => format!("admitted {:?}", report.map(|it| it.headers())),
        Verdict::Refuse(refusal) => format!("{} {:?}", refusal.by.state(), refusal.headers()),
        other => format!("{other:?}"),
    }
}

#[test]
fn policy_changes_no_decision_about_another_route() {
    let mut accepted = 0;
    for round in 0..600 {
        let seed = seed::next();
        let mut rng = Rng::with_seed(seed);
        let plane = round % 2;
        let rights = Rights { rules: 100, ..platform(PLATFORM, KEYS).rights };
        let planes = [Plane::EnvoyGateway, Plane::Istio];
        let platform = Platform { rights, plane: planes[plane], ..platform(PLATFORM, KEYS) };
        let victim = policy("team-a/limits", 9, "shop", VICTIM);
        let attacks = (0..rng.i64(1..3)).map(|number| {
            policy(
                &format!("team-b/{}", ["limits", "a.b"][number as usize]),
                number,
                "cart",
                &entries(&mut rng),
            )
        });
        let attacks: Vec<_> = attacks.collect();
        let all: Vec<_> = attacks.iter().cloned().chain([victim.clone()]).collect();
        let alone = compose(&platform, &[victim], &routes(), &namespaces());
        let together = compose(&platform, &all, &routes(), &namespaces());
        assert_eq!(status(&together, "team-a/limits"), status(&alone, "team-a/limits"));
        accepted += together
            .policies
            .iter()
            .filter(|it| it.namespace == "team-b" && it.refusal.is_none())
            .count();
        let mut gates = [Gate::new(&alone.document), Gate::new(&together.document)];
        for _ in 0..60 {
            if rng.u8(..) < 128 {
                let own = request(&mut rng, "b.example", OWN[plane]);
                gates.iter_mut().for_each(|gate| _ = gate.decide(&own));
                continue;
            }
            let route = pick(&mut rng, OTHERS[plane]);
            let other = request(&mut rng, "a.example", route);
            let [expected, found] = gates.each_mut().map(|gate| decided(gate, &other));
            assert_eq!(found, expected, "{other:?}\n{}", together.document);
            let pause = rng.u64(..3_000_000);
            gates.iter().for_each(|gate| gate.wait(pause));
        }
    }
    assert!(accepted > 200, "{accepted}");
}

/// The entries of the attacked team in a document.
fn entries_of_victim<'d>(document: &'d str) -> Vec<&'d str> {
    // The end of the document is behind the last one.
    let entry = |line: &'d str| line.strip_suffix("]}").unwrap_or(line.trim_end_matches(','));
    document.lines().map(entry).filter(|it| it.contains("team-a/")).collect()
}

#[test]
fn flood_of_one_namespace_changes_no_decision_of_another() {
    let mut shared = 0;
    for round in 0..12 {
        let mut rng = Rng::with_seed(seed::next());
        // Fewer than the callers of each team, so that all of them share buckets.
        let rights = Rights { rules: 100, callers: 64, ..platform(PLATFORM, KEYS).rights };
        let platform = Platform { rights, ..platform(PLATFORM, KEYS) };
        let scope = ["local", "gateway"][round % 2];
        let own = format!(
            "[{{url: /, rules: [{{name: checkout, actor: account, unit: day, rpu: 3, scope: {scope}}}]}}]"
        );
        let victim = policy("team-a/limits", 9, "shop", &own);
        let attacks: Vec<_> = (0..3)
            .map(|number| policy(&format!("team-b/p{number}"), number, "cart", &entries(&mut rng)))
            .chain([policy("team-b/own", 3, "cart", &own)])
            .collect();
        let all: Vec<_> = attacks.iter().cloned().chain([victim.clone()]).collect();
        let alone = compose(&platform, &[victim], &routes(), &namespaces());
        let together = compose(&platform, &all, &routes(), &namespaces());
        assert_eq!(entries_of_victim(&together.document), entries_of_victim(&alone.document));
        let mut gates = [Gate::new(&alone.document), Gate::new(&together.document)];
        let request = |rng: &mut Rng, route: &str| {
            let account = format!("{}", rng.u16(..600));
            FakeRequest::get("/").header("x-account-id", &account).routed(route)
        };
        let mut decided = [0; 2];
        for _ in 0..3_000 {
            let flood = request(&mut rng, OWN[0]);
            gates.iter_mut().for_each(|gate| _ = gate.decide(&flood));
            let other = request(&mut rng, "httproute/team-a/shop/rule/0");
            let [expected, found] = gates.each_mut().map(|gate| gate.admits(&other));
            assert_eq!(found, expected, "{other:?}\n{}", together.document);
            decided[usize::from(found)] += 1;
        }
        // Callers with rows of their own would be admitted 1,800 times.
        shared += 1_800 - decided[1];
    }
    assert!(shared > 1_000, "{shared}");
}
