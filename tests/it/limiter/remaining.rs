//! The reported remaining permits are available to further requests.

use diana_algorithm::{Entry, REGISTRY};
use diana_limiter::{Record, Verdict};
use diana_policy::Quota;
use diana_policy::decision::Retry;
use diana_policy::time::{SECOND, Unit};
use diana_store::permit::Permit;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::FakeRequest;

use super::Gate;
use diana_policy::port::Clock;

const LIMIT: u64 = 10;

/// A gate with one rule, and the permits of the requests that it admitted.
struct Caller {
    gate: Gate,
    permits: Vec<Permit>,
    /// Returns true if requests are charged when they end.
    settles: bool,
}

/// The outcome of one request.
#[derive(Debug)]
enum Seen {
    /// It passes at once, with this many permits left.
    Admitted(u64),
    Held,
    Refused(Record),
    Waits,
}

impl Caller {
    fn new(rule: &str) -> Caller {
        let text = format!(
            "accepted: {{headers: true}}\nlimits: [{{Url: /, rules: [{{name: r, actor: all, {rule}}}]}}]"
        );
        Caller { gate: Gate::new(&text), permits: Vec::new(), settles: rule.contains("x-used") }
    }

    /// Sends a request of this cost. If the rule settles, it uses that many permits.
    fn send(&mut self, cost: u64) -> Seen {
        let limit = (LIMIT as f64).to_le_bytes();
        let request = FakeRequest::get("/")
            .header("x-cost", cost.to_string())
            .property(&["metadata", "filter_metadata", "plan", "limit"], limit);
        match self.gate.decide(&request) {
            Verdict::Admit(mut permit, report) => {
                if self.settles {
                    let came = FakeEnding::answered(200).header("x-used", cost.to_string());
                    let now = self.gate.clock.now();
                    self.gate.limiter.on_response(&mut permit, &came);
                    self.gate.limiter.finish(permit, &FakeEnding::answered(200), now);
                } else {
                    self.permits.push(permit);
                }
                let headers = report.expect("it reports headers").headers();
                Seen::Admitted(left(headers.get("ratelimit").expect("it has a number")))
            }
            Verdict::Hold(_) => Seen::Held,
            Verdict::Refuse(refusal) => Seen::Refused(refusal.by),
            Verdict::Pending { .. } => Seen::Waits,
        }
    }

    /// The number of requests of one permit that pass at once.
    fn gets(&mut self) -> u64 {
        (0..).take_while(|_| matches!(self.send(1), Seen::Admitted(_))).count() as u64
    }
}

/// The number after `r`.
fn left(item: &str) -> u64 {
    let number = item.split(";r=").nth(1).unwrap().split(';').next().unwrap();
    number.parse().unwrap()
}

/// Quotas of every algorithm, with and without a warm-up.
fn algorithms() -> Vec<(&'static Entry, String)> {
    let numbers = |entry: &'static Entry, more: &str| {
        let holds = (entry.capabilities)(&Quota::new(Unit::Minute, LIMIT)).holds;
        let delay = if holds { ", max_delay: 10s" } else { "" };
        (entry, format!("unit: minute, rpu: {LIMIT}, algo: {}{delay}{more}", entry.short))
    };
    let warms_up = |entry: &&Entry| entry.keys.iter().any(|key| key.name == "warm_up");
    let plain = REGISTRY.iter().map(|entry| numbers(entry, ""));
    let warm = REGISTRY.iter().filter(warms_up).map(|entry| numbers(entry, ", warm_up: 1m"));
    plain.chain(warm).collect()
}

#[test]
fn remaining_permits_are_admitted() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let mut seen = [0; 2];
    for scope in ["local", "gateway"] {
        for (entry, algorithm) in algorithms() {
            let settled = [0, 1].map(|reserve| {
                format!("cost: {{response: {{header: x-used}}, reserve: {reserve}, max: 9}}, {algorithm}")
            });
            let in_header = format!("cost: {{header: x-cost, max: {LIMIT}}}, {algorithm}");
            let in_flight = "in_flight: 10".into();
            let can_settle = (entry.capabilities)(&Quota::new(Unit::Minute, LIMIT)).settles;
            let settled = settled.into_iter().filter(|_| can_settle);
            for rule in settled.chain([in_header, in_flight]) {
                for _ in 0..40 {
                    let mut caller = Caller::new(&format!("{rule}, scope: {scope}"));
                    let mut last = caller.send(rng.u64(1..9));
                    for _ in 0..rng.usize(0..6) {
                        // Without maintenance a worker's in-flight slots are treated as those of a
                        // dead one.
                        let longest = if rule.starts_with("in_flight") { 1 } else { 7 * SECOND };
                        caller.gate.wait(rng.u64(0..longest));
                        last = caller.send(rng.u64(1..5));
                    }
                    let (left, is_refused) = match last {
                        Seen::Admitted(left) => (left, false),
                        Seen::Refused(record) => {
                            (record.outcome.remaining().expect("a number"), true)
                        }
                        Seen::Held | Seen::Waits => continue,
                    };
                    // A settled request is charged after its response.
                    if caller.settles && !is_refused {
                        continue;
                    }
                    seen[usize::from(is_refused)] += 1;
                    let gets = caller.gets();
                    // The gateway caches refusals for a moment.
                    let is_true = left == gets || scope == "gateway" && is_refused && left < gets;
                    assert!(is_true, "{rule}, {scope}: {left} reported, {gets} there");
                }
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn cost_above_the_limit_reports_remaining_permits() {
    for scope in ["local", "gateway"] {
        for algo in ["W", "SW", "TB"] {
            let rule = format!(
                "unit: minute, rpu: {{metadata: [plan, limit], default: 100, max: 100}}, algo: {algo},
                 cost: {{header: x-cost, max: 50}}, scope: {scope}"
            );
            let mut caller = Caller::new(&rule);
            for used in 0..=LIMIT {
                let Seen::Refused(by) = caller.send(50) else { panic!("admitted") };
                assert_eq!(by.outcome.refused().map(|it| it.retry), Some(Retry::Never));
                assert_eq!(by.outcome.remaining(), Some(LIMIT - used), "{rule}");
                assert_eq!(matches!(caller.send(1), Seen::Admitted(_)), used < LIMIT, "{rule}");
            }
        }
    }
}

/// With `reserve: 0` a request takes no permit until it ends.
#[test]
fn request_without_reserve_reports_every_permit() {
    for scope in ["local", "gateway"] {
        for algo in ["W", "SW"] {
            for count in ["", "count: {status: [200]}, "] {
                let rule = format!(
                    "unit: hour, rpu: {LIMIT}, algo: {algo}, scope: {scope}, {count}
                     cost: {{response: {{header: x-used}}, reserve: 0, max: 9}}"
                );
                let mut caller = Caller::new(&rule);
                for used in 0..LIMIT {
                    let Seen::Admitted(left) = caller.send(1) else { panic!("refused") };
                    assert_eq!(left, LIMIT - used, "{rule}");
                }
                let Seen::Refused(by) = caller.send(1) else { panic!("admitted") };
                assert_eq!(by.outcome.remaining(), Some(0), "{rule}");
            }
        }
    }
}

/// With `reserve: 0` a request is near the limit only by earlier usage.
#[test]
fn request_without_reserve_is_near_by_earlier_usage() {
    for scope in ["local", "gateway"] {
        let rule = format!(
            "unit: hour, rpu: {LIMIT}, algo: W, scope: {scope}, near: 80,
             cost: {{response: {{header: x-used}}, reserve: 0, max: 9}}"
        );
        let mut caller = Caller::new(&rule);
        // Of 0, 8 and 9 permits used before, only the last are more than 80 per cent.
        [8, 1, 1]
            .into_iter()
            .for_each(|cost| assert!(matches!(caller.send(cost), Seen::Admitted(_))));
        assert!(caller.gate.metrics().contains(&"diana.ns.rule.r.near 1".into()), "{scope}");
    }
}
