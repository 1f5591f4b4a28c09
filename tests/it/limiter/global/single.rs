//! The only gateway of a Redis decides as if it counted locally: a request is charged by all of its
//! rules or by none, in any scope, and the remaining permits are reported.

use std::collections::HashMap;

use diana_policy::headers::Headers;
use diana_policy::port::Clock;
use diana_policy::redis::OnFailure;
use diana_policy::time::SECOND;
use fastrand::Rng;
use kit::fake::{FakeMetrics, FakeRequest};
use kit::model::proxy::Proxy;
use kit::model::redis::Redis;
use kit::seed;

use super::{Worker, request};

/// Ticks between two requests. Returns have arrived by then, and a slot of a queue is longer.
const APART: u64 = 700_000;

/// A rule, and the expected usage of its callers.
struct Rule {
    actor: &'static str,
    algo: &'static str,
    scope: &'static str,
    rpu: u64,
    shadow: bool,
    used: HashMap<String, u64>,
    /// The number of the request that took the last slot.
    taken: HashMap<String, u64>,
    allowed: u64,
}

impl Rule {
    fn random(rng: &mut Rng) -> Rule {
        let pick = |rng: &mut Rng, all: &[&'static str]| all[rng.usize(..all.len())];
        Rule {
            actor: pick(rng, &["account", "device", "[account, device]", "all"]),
            algo: pick(rng, &["W", "SW", "TB", "LB"]),
            scope: pick(rng, &["global", "global", "global", "gateway", "local"]),
            rpu: rng.u64(1..12),
            shadow: rng.u8(..4) == 0,
            used: HashMap::new(),
            taken: HashMap::new(),
            allowed: 0,
        }
    }

    fn text(&self, number: usize) -> String {
        let Rule { actor, algo, scope, rpu, shadow, .. } = self;
        let limit = match *algo {
            "LB" => "unit: second, rpu: 1, max_queue: 0".into(),
            _ => format!("unit: day, rpu: {rpu}"),
        };
        format!(
            "{{name: r{number}, actor: {actor}, algo: {algo}, scope: {scope}, shadow: {shadow}, {limit}}}"
        )
    }

    fn caller(&self, account: &str, device: &str) -> String {
        match self.actor {
            "account" => account.into(),
            "device" => device.into(),
            "all" => String::new(),
            _ => format!("{account}+{device}"),
        }
    }

    /// A caller's remaining permits at the request with this number.
    fn left(&self, caller: &str, request: u64) -> u64 {
        match self.algo {
            "LB" => {
                let is_free = |last: &u64| (request - last) * APART >= SECOND;
                u64::from(self.taken.get(caller).is_none_or(is_free))
            }
            _ => self.rpu - self.used.get(caller).copied().unwrap_or(0),
        }
    }

    fn charge(&mut self, caller: &str, request: u64) {
        self.allowed += 1;
        *self.used.entry(caller.into()).or_default() += 1;
        self.taken.insert(caller.into(), request);
    }
}

/// The remaining permits by rule, read from the response.
fn remaining(fields: &Headers) -> Vec<(usize, u64)> {
    let one = |text: &str| {
        let (name, rest) = text.trim().split_once(";r=")?;
        let left = rest.split(';').next()?.parse().ok()?;
        Some((name.trim_matches('"').strip_prefix('r')?.parse().ok()?, left))
    };
    fields.get("ratelimit").into_iter().flat_map(|text| text.split(',')).filter_map(one).collect()
}

#[test]
fn fleet_of_one_decides_like_a_gateway() {
    let mut rng = Rng::with_seed(seed::next());
    let mut seen = [0; 2];
    for _ in 0..60 {
        let mut rules: Vec<Rule> = (0..rng.usize(1..5)).map(|_| Rule::random(&mut rng)).collect();
        let is_spread = rng.bool();
        let redis = if is_spread { ", proxied: true, parts: 64" } else { "" };
        let texts: Vec<String> = rules.iter().enumerate().map(|(at, rule)| rule.text(at)).collect();
        let text = format!(
            "actors: {{account: [{{header: x-account-id}}], device: [{{header: x-device-id}}]}}
redis: {{cluster: redis{redis}}}
limits: [{{Url: /, rules: [{}]}}]",
            texts.join(", ")
        );
        let mut worker = Worker::of(&text, OnFailure::Gateway);
        let (mut proxy, mut single) = (Proxy::default(), Redis::default());
        for number in 0..40 {
            let begun = worker.clock.now();
            let account = ["ann", "bob", "cid"][rng.usize(..3)];
            let device = ["phone", "pad"][rng.usize(..2)];
            let request =
                FakeRequest::get("/").header("x-account-id", account).header("x-device-id", device);
            worker.request(&request);
            worker.steps(300, &mut |call, time| {
                Some(match is_spread {
                    true => proxy.answer(&call.body, time),
                    false => single.answer(&call.body, time),
                })
            });
            let left = |rule: &Rule| rule.left(&rule.caller(account, device), number);
            let fits = rules.iter().all(|rule| rule.shadow || left(rule) > 0);
            seen[usize::from(fits)] += 1;
            assert_eq!(worker.verdicts.pop(), Some(fits), "request {number}: {text}");
            assert!(worker.verdicts.is_empty() && worker.waiting.is_empty());
            if fits {
                for rule in rules.iter_mut().filter(|rule| left(rule) > 0) {
                    rule.charge(&rule.caller(account, device), number);
                }
                let shown = rules.iter().enumerate().filter(|(_, rule)| !rule.shadow);
                let wanted: Vec<(usize, u64)> = shown
                    .map(|(at, rule)| (at, rule.left(&rule.caller(account, device), number)))
                    .collect();
                assert_eq!(remaining(&worker.fields), wanted, "request {number}: {text}");
            }
            worker.clock.0.set(begun.later(APART));
        }
        let lines = FakeMetrics::default();
        worker.limiter.flush("ns", &lines);
        let lines = lines.0.take();
        for (at, Rule { allowed, .. }) in rules.iter().enumerate().filter(|(_, it)| it.allowed > 0)
        {
            let line = format!("diana.ns.rule.r{at}.allowed {allowed}");
            assert!(lines.contains(&line), "no {line} in {lines:?}: {text}");
        }
    }
    assert!(seen.iter().all(|count| *count > 300), "{seen:?}");
}

/// A held request reports a free position only behind its own turn, in any scope.
#[test]
fn held_request_reports_the_next_free_position() {
    for scope in ["global", "gateway", "local"] {
        let line = "name: line, algo: LB, max_queue: 9, max_delay: 10s";
        let rule = format!("{line}, actor: account, unit: second, rpu: 1, scope: {scope}");
        let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
        for turn in 0..9 {
            worker.request(&request());
            worker.steps(3, &mut |call, time| Some(redis.answer(&call.body, time)));
            let field = format!("\"line\";r=0;t={}", turn + 1);
            assert_eq!(worker.fields.get("ratelimit"), Some(&*field), "{scope}");
        }
    }
}
