//! Unusual units and time zones with summer time, in Redis as in Rust.

use diana_policy::decision::{Decision, Retry};
use diana_policy::time::{DAY, SECOND, Unit};
use diana_policy::{Quota, Starts, Zone};
use diana_redis::protocol::{Pipeline, RuleReply};
use fastrand::Rng;

use kit::rules::{Rule, at, pipeline, today};
use kit::seed;
use kit::server::Server;
use kit::zones::{SUMMER, some_starts, zone};

const HOUR: u64 = 3_600 * SECOND;

/// One caller, in Redis and in Rust.
struct Caller<'s> {
    server: &'s Server,
    rule: Rule,
    state: Vec<u64>,
}

impl Caller<'_> {
    fn new(server: &Server, rule: Rule) -> Caller<'_> {
        server.command(&["FLUSHALL"]);
        Caller { server, state: vec![0; rule.case.algorithm.properties().words], rule }
    }

    /// Sends a request at `now` from a gateway with the wall clock `wall`.
    fn ask(&mut self, cost: u64, now: u64, wall: u64) {
        let charge = self.rule.charge(7, cost, 0);
        let decided = self.server.decide(&Pipeline { wall, ..pipeline(Some(now), vec![charge]) });
        assert_eq!(decided.corrupt, 0);
        let algorithm = &self.rule.case.algorithm;
        let old = self.state.clone();
        let retry = match algorithm.step(&old, at(now), 0, cost, &mut self.state) {
            Decision::Admit { .. } => None,
            Decision::Refuse { retry } => Some(retry),
        };
        let RuleReply { retry: found, remaining, .. } = decided.asks[0].rules[0];
        let quota = &self.rule.case.quota;
        // Longer delays are reported as 2⁵³.
        let near = |retry| match retry {
            Some(Retry::After(ticks)) => Some(Retry::After(ticks.min(1 << 53))),
            other => other,
        };
        assert_eq!(near(found), near(retry), "{quota:?} at {now}, by a gateway at {wall}");
        let left = algorithm.balance(&self.state, at(now)).remaining;
        assert_eq!(remaining, left, "{quota:?} at {now}, by a gateway at {wall}");
    }
}

/// Redis has no calendar, and the clocks of gateways differ.
#[test]
fn windows_follow_the_calendar_for_any_gateway_clock() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let units = [
        Unit::Second,
        Unit::of(7 * SECOND),
        Unit::of(90 * 60 * SECOND),
        Unit::Day,
        Unit::Week,
        Unit::Month,
        Unit::Year,
        Unit::of(2 * DAY),
        Unit::of(31 * DAY),
    ];
    for number in 0..180 {
        let zone = match number % 4 {
            0 => Zone::ahead(rng.i32(-56..=56) * 900),
            _ => zone(SUMMER[rng.usize(0..SUMMER.len())]),
        };
        let starts = if rng.bool() { Starts::PLAIN } else { some_starts(&mut rng) };
        let plain = Quota::new(units[number % units.len()], rng.u64(1..4));
        let quota = Quota { zone, starts, ..plain };
        let mut caller = Caller::new(&server, Rule::new("W", quota));
        let windows = diana_algorithm::calendar::Windows::of(&quota);
        let mut now = today(&mut rng);
        for _ in 0..40 {
            let apart = 20 * HOUR;
            let wall = now - apart + rng.u64(0..2 * apart);
            caller.ask(1, now, wall);
            now = match rng.u8(0..6) {
                0 => windows.at(now).ends,
                1 => windows.at(now).ends - 1,
                2 => now + rng.u64(0..=2 * quota.period()),
                _ => now + rng.u64(0..SECOND),
            };
        }
    }
}

/// A window in progress ends as planned, whatever the gateways send meanwhile.
#[test]
fn changed_start_frees_nothing_before_the_window_ends() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    for number in 0..60 {
        let unit = [Unit::Day, Unit::Week, Unit::Month, Unit::Year][number % 4];
        let zone = zone(SUMMER[rng.usize(0..SUMMER.len())]);
        let quota = Quota { zone, ..Quota::new(unit, rng.u64(1..6)) };
        let mut caller = Caller::new(&server, Rule::new("W", quota));
        let mut now = today(&mut rng);
        for _ in 0..40 {
            let Rule { fingerprint, counts, .. } = caller.rule;
            let quota = Quota { starts: some_starts(&mut rng), ..quota };
            caller.rule = Rule { fingerprint, counts, ..Rule::new("W", quota) };
            let apart = 20 * HOUR;
            caller.ask(1, now, now - apart + rng.u64(0..2 * apart));
            let windows = diana_algorithm::calendar::Windows::of(&quota);
            now = match rng.u8(0..4) {
                0 => windows.at(now).ends,
                1 => now + rng.u64(0..=quota.period() / 4),
                _ => now + rng.u64(0..SECOND),
            };
        }
    }
}

/// Numbers in Lua are exact below 2⁵³. A billion permits in 31 days exceed that by far.
#[test]
fn buckets_are_exact_up_to_a_billion_in_31_days() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let permits = [1, 7, 86_399, 999_983, 1 << 29, 999_999_937, 1_000_000_000];
    let mut refused = 0;
    for number in 0..60 {
        let ticks = match number % 3 {
            0 => Unit::LONGEST,
            1 => rng.u64(20 * DAY..=Unit::LONGEST),
            _ => Unit::LONGEST - 1_000 * rng.u64(0..100),
        };
        let rpu = permits[rng.usize(0..permits.len())];
        let burst = permits[rng.usize(0..permits.len())];
        let quota = Quota { burst: Some(burst), ..Quota::new(Unit::of(ticks), rpu) };
        let mut caller = Caller::new(&server, Rule::new("TB", quota));
        let mut now = today(&mut rng);
        for _ in 0..40 {
            let cost = match rng.u8(0..3) {
                0 => rng.u64(1..=burst),
                1 => rng.u64(1..=burst.min(9)),
                _ => burst.min(rng.u64(1..=1_000_000)),
            };
            let before = caller.state.clone();
            caller.ask(cost, now, now);
            refused += usize::from(before == caller.state);
            now += match rng.u8(0..4) {
                0 => rng.u64(0..=2 * ticks),
                1 => rng.u64(0..=ticks),
                2 => rng.u64(0..=ticks / rpu + 1),
                _ => rng.u64(0..SECOND),
            };
        }
    }
    assert!(refused > 200, "{refused}");
}
