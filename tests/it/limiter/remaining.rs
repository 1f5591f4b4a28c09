//! The reported remaining permits are available to further requests.

use diana_limiter::{Record, Verdict};
use diana_policy::decision::Retry;
use diana_store::permit::Permit;
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
}

/// The number after `r`.
fn left(item: &str) -> u64 {
    let number = item.split(";r=").nth(1).unwrap().split(';').next().unwrap();
    number.parse().unwrap()
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
