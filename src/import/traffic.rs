//! Generated requests that show how rules count: steady ones, bursts, the edges of refills, many
//! callers, requests after refusals, and requests without a key.

use std::net::{IpAddr, Ipv4Addr};

use diana_policy::time::Micros;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, Policy, Rule};
use diana_replay::PlainRequest;

/// Maximum number of requests in a burst.
const MOST_AT_ONCE: u64 = 10_000;

/// The same for several rules, which have many bursts.
const MOST_OF_SEVERAL: u64 = 3_000;

/// Maximum number of rules of an object with requests of their own.
const MOST_TOGETHER: usize = 8;

/// The caller with an exempt address.
pub(crate) const EXEMPT: u8 = u8::MAX;

/// A generated request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrafficRequest {
    /// Milliseconds since the beginning.
    pub(crate) at: u64,
    /// The number of the caller; none if the request has no key.
    pub(crate) caller: Option<u8>,
    /// Milliseconds that it takes.
    pub(crate) took: u64,
    /// The rules that do not count it, as bits: it has no value, or is of another part.
    pub(crate) lacks: u32,
}

/// Requests in the order of their times.
struct GeneratedTraffic {
    requests: Vec<TrafficRequest>,
    now: u64,
    /// Of a generator of equal numbers in each run.
    seed: u64,
}

impl GeneratedTraffic {
    fn send(&mut self, caller: Option<u8>, took: u64, count: u64) {
        for _ in 0..count {
            self.requests.push(TrafficRequest { at: self.now, caller, took, lacks: 0 });
        }
    }

    /// A number below `end`.
    fn random(&mut self, end: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % end.max(1)
    }

    /// The requests for a rule with one permit in `interval` milliseconds, of which `most` pass at
    /// once.
    fn of_rate(&mut self, interval: u64, most: u64, callers: [u8; 3]) {
        let [first, second, third] = callers;
        let most = most.min(MOST_AT_ONCE);
        self.send(Some(first), 0, most + 2);
        // Requests after refusals, up to each edge and beyond.
        for wait in
            [interval.saturating_sub(1), 1, 1, interval.saturating_sub(2), 1, 1, 2 * interval]
        {
            self.now += wait;
            self.send(Some(first), 0, 1);
        }
        for _ in 0..60 {
            self.now += (interval / 5).max(1);
            self.send(Some(first), 0, 1);
        }
        for gap in [interval, interval.saturating_sub(1), interval + 1, interval / 2] {
            for _ in 0..30 {
                self.now += gap.max(1);
                self.send(Some(second), 0, 1);
                self.send(Some(third), 0, 2);
            }
        }
        // Full again, but for a millisecond.
        self.now += (most * interval).saturating_sub(1);
        self.send(Some(first), 0, most + 1);
        for _ in 0..400 {
            let gaps = [0, 0, 1, interval / 3, interval.saturating_sub(1), interval, interval + 1];
            let gap = usize::try_from(self.random(7)).ok().and_then(|at| gaps.get(at));
            self.now += gap.copied().unwrap_or(0);
            let caller = match self.random(3) {
                0 => first,
                1 => second,
                _ => third,
            };
            let took = self.random(3) * interval;
            self.send(Some(caller), took, 1);
        }
        self.now += 3 * most * interval + 1000;
    }

    /// For each of several rules: requests that exhaust only this one, then many of all rules, and
    /// those that show the charges of the others for them.
    fn of_several(&mut self, policy: &Policy, optional: u32) {
        let most = policy.rules().map(at_once).max().unwrap_or(0).min(MOST_OF_SEVERAL) + 2;
        let longest = policy.rules().map(|rule| rule.quota.period() / 1000).max().unwrap_or(0);
        for (number, rule) in policy.rules().enumerate().take(MOST_TOGETHER) {
            // Until one permit returns.
            let wait = (rule.quota.period() / 1000).div_ceil(rule.quota.rpu.max(1));
            let own = bit(number) & optional;
            for (lacks, wait) in [(optional & !own, 0), (0, wait), (own, 0), (0, 0)] {
                let from = self.requests.len();
                self.send(Some(0), 0, most);
                self.requests.iter_mut().skip(from).for_each(|request| request.lacks = lacks);
                self.now += wait;
            }
            self.now += (2 + most) * longest;
        }
    }

    /// The requests for a rule that admits `most` of them at a time.
    fn of_slots(&mut self, most: u64, caller: u8) {
        let most = most.min(MOST_AT_ONCE);
        self.send(Some(caller), 1000, most + 2);
        for wait in [999, 1, 1] {
            self.now += wait;
            self.send(Some(caller), 500, 2);
        }
        for _ in 0..300 {
            self.now += self.random(200);
            let took = self.random(2000);
            self.send(Some(caller), took, 1);
        }
        self.now += 3_600_000;
    }
}

/// The bit of a rule.
pub(crate) fn bit(number: usize) -> u32 {
    u32::try_from(number).ok().and_then(|number| 1_u32.checked_shl(number)).unwrap_or(0)
}

fn sources<'p>(rule: &'p Rule, policy: &'p Policy) -> impl Iterator<Item = &'p IdentitySource> {
    let actors = rule.actor.iter().filter_map(|&actor| policy.actors.get(actor));
    actors.flat_map(|actor| &actor.sources)
}

/// The rules that do not count a request without a value, as bits.
fn keyed(policy: &Policy) -> u32 {
    let is_keyed = |rule: &Rule| {
        sources(rule, policy).any(|it| !["client_address", "attribute"].contains(&it.kind))
    };
    let rules = policy.rules().enumerate().filter(|(_, rule)| is_keyed(rule));
    rules.map(|(number, _)| bit(number)).sum()
}

/// The header of the requests of a partial rule.
pub(crate) fn part_header(number: usize) -> String {
    format!("x-part-{number}")
}

/// Requests for all rules of a policy, of which those with these bits are partial.
pub(crate) fn generate(policy: &Policy, partial: u32) -> Vec<TrafficRequest> {
    let mut traffic = GeneratedTraffic { requests: Vec::new(), now: 0, seed: 1 };
    for (number, rule) in policy.rules().enumerate() {
        let first = (number as u8).saturating_mul(4).min(200);
        if rule.is_in_flight() {
            traffic.of_slots(rule.quota.rpu, first);
        } else {
            let interval = (rule.quota.period() / 1000).div_ceil(rule.quota.rpu.max(1)).max(1);
            traffic.of_rate(interval, at_once(rule), [first, first + 1, first + 2]);
        }
        let most = at_once(rule).min(50);
        traffic.send(None, 0, most + 2);
        traffic.send(Some(EXEMPT), 0, most + 2);
        traffic.now += 3_600_000;
    }
    if policy.rules().nth(1).is_some() {
        traffic.of_several(policy, partial | keyed(policy));
    }
    traffic.requests
}

/// The number of requests that a rule admits or delays at once.
fn at_once(rule: &Rule) -> u64 {
    let quota = &rule.quota;
    let burst = quota.burst.unwrap_or(if rule.algo == "LB" { 1 } else { quota.rpu });
    burst.saturating_add(quota.max_queue.unwrap_or(0))
}

/// The request as Diana and a model read it.
pub(crate) fn plain(
    request: &TrafficRequest,
    policy: &Policy,
    partial: u32,
    begin: Micros,
) -> PlainRequest {
    let exempt =
        policy.excepts().flat_map(|except| &except.any).flat_map(|it| &it.addresses).next();
    let address = match (request.caller, exempt) {
        (Some(EXEMPT), Some(net)) => net.addr(),
        (caller, _) => IpAddr::V4(Ipv4Addr::new(198, 51, 100, caller.map_or(254, |it| it % 250))),
    };
    let mut plain = PlainRequest {
        at: begin + request.at * 1000,
        took: request.took * 1000,
        status: 200,
        address: Some(address),
        host: Some("example.com".into()),
        method: "GET".into(),
        path: "/".into(),
        headers: (0..policy.rules().count())
            .filter(|number| bit(*number) & partial & !request.lacks != 0)
            .map(|number| (part_header(number), "yes".into()))
            .collect(),
        route: None,
    };
    if let Some(caller) = request.caller {
        for (number, rule) in policy.rules().enumerate() {
            if request.lacks & bit(number) == 0 {
                sources(rule, policy).for_each(|source| add(source, caller, &mut plain));
            }
        }
    }
    plain
}

/// Adds the value of a caller to a request.
fn add(source: &IdentitySource, caller: u8, plain: &mut PlainRequest) {
    let Tree::Text(name) = &source.value else { return };
    let value = format!("caller-{caller}");
    match source.kind {
        "header" if plain.headers.iter().all(|(known, _)| known != name) => {
            plain.headers.push((name.clone(), value));
        }
        "cookie" => plain.headers.push(("cookie".into(), format!("{name}={value}"))),
        "query" => plain.path = format!("/?{name}={value}"),
        "attribute" => match name.as_str() {
            "host" => plain.host = Some(format!("{value}.example.com")),
            "path" => plain.path = format!("/{value}"),
            _ => plain.method = format!("M{caller}"),
        },
        _ => {}
    }
}
