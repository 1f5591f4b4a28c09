//! Callers that use exactly their limit, spread over all workers of all gateways: none of their requests
//! is refused, and not one more is let through.

use super::modes::{Modes, without_cause};
use super::{Fleet, SECOND, at_once};
use crate::harness::{Client, Clock, NO_EXCUSE, alone, exchange, request, try_until_undisturbed};

/// What the gateways wait for Redis, in microseconds.
const TIMEOUT: u64 = 500_000;

/// A path whose rule shows whether the gateways count together.
const TOGETHER: &str = "/together";

const SCOPES: [&str; 2] = ["global", "gateway"];
const ALGORITHMS: [&str; 3] = ["W", "SW", "TB"];
const LIMITS: [(&str, usize); 5] =
    [("hour", 10), ("day", 3), ("hour", 100), ("hour", 200), ("hour", 500)];
const WAYS: [Way; 4] = [Way::InTurn, Way::Kept, Way::AtOnce(6), Way::AtOnce(24)];

/// How a caller sends its requests.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// One after the other, each by a new connection.
    InTurn,
    /// One after the other, by a connection to each gateway that is kept.
    Kept,
    /// By so many connections at once.
    AtOnce(usize),
}

/// A rule and a caller of it.
#[derive(Clone, Copy, Debug)]
struct Caller {
    scope: &'static str,
    algo: &'static str,
    limit: (&'static str, usize),
    way: Way,
}

fn callers() -> Vec<Caller> {
    let mut callers = Vec::new();
    for scope in SCOPES {
        for algo in ALGORITHMS {
            for limit in LIMITS {
                callers.extend(WAYS.map(|way| Caller { scope, algo, limit, way }));
            }
        }
    }
    callers
}

fn rules() -> String {
    let all = "{actor: all, unit: second, rpu: 1000000, scope: global}";
    let mut rules = format!("limits:\n  - {{Url: {TOGETHER}, rules: [{all}]}}\n");
    for scope in SCOPES {
        for algo in ALGORITHMS {
            for (unit, rpu) in LIMITS {
                rules += &format!(
                    "  - {{Url: /{scope}/{algo}/{unit}/{rpu}, rules: [{{actor: account, unit: {unit}, \
                     rpu: {rpu}, algo: {algo}, scope: {scope}}}]}}\n"
                );
            }
        }
    }
    rules
}

impl Caller {
    fn request(self) -> Vec<u8> {
        let Caller { scope, algo, limit: (unit, rpu), way } = self;
        let name = format!("{way:?}");
        request("GET", &format!("/{scope}/{algo}/{unit}/{rpu}"), &[("x-account-id", &name)])
    }

    /// The ports to which its requests go, in turn.
    fn ports(self, fleet: &Fleet) -> Vec<u16> {
        let ports = fleet.envoys.iter().map(|envoy| envoy.port);
        // What a gateway counts by itself is one gateway's.
        if self.scope == "global" { ports.collect() } else { ports.take(1).collect() }
    }

    /// How many of so many requests are let through.
    fn admitted(self, fleet: &Fleet, of: usize) -> usize {
        let (ports, bytes) = (self.ports(fleet), self.request());
        let admitted = |status: u16| {
            assert!([200, 429].contains(&status), "{self:?}: {status}");
            usize::from(status == 200)
        };
        let in_turn = |numbers: &mut dyn Iterator<Item = usize>, ports: &[u16], kept: bool| {
            let connect = || ports.iter().map(|port| Client::connect(*port).unwrap()).collect();
            let mut clients: Vec<Client> = if kept { connect() } else { Vec::new() };
            let mut send = |number: usize| match clients.get_mut(number % ports.len()) {
                Some(client) => client.send(&bytes).unwrap().status,
                None => exchange(ports[number % ports.len()], &bytes).unwrap().status,
            };
            numbers.map(|number| admitted(send(number))).sum::<usize>()
        };
        match self.way {
            Way::InTurn => in_turn(&mut (0..of), &ports, false),
            Way::Kept => in_turn(&mut (0..of), &ports, true),
            Way::AtOnce(connections) => {
                at_once(ports.iter().copied().cycle().take(connections), &bytes, of)
            }
        }
    }
}

#[test]
fn whoever_uses_exactly_its_limit_gets_all_of_it_and_not_one_more() {
    alone();
    try_until_undisturbed("exact limits", || {
        // A wire would need threads for each of many thousand calls.
        let fleet = Fleet::start_at_redis(TIMEOUT, &rules());
        fleet.comes_together(TOGETHER);
        let (modes, clock) = (Modes::watch(&fleet.envoys), Clock::new());
        let hour = clock.now() / (3600 * SECOND);
        let mut complaints = Vec::new();
        let mut early = Vec::new();
        for caller in callers() {
            let began = clock.now();
            let (_, limit) = caller.limit;
            let admitted = caller.admitted(&fleet, limit);
            let elapsed = clock.now() - began;
            // A bucket of 200 an hour gets one back every 18 s.
            let back =
                if caller.algo == "TB" { limit as u64 * elapsed / (3600 * SECOND) } else { 0 };
            let more = caller.admitted(&fleet, 3) as u64;
            let next_hour = clock.now() / (3600 * SECOND) > hour;
            let all = admitted as u64 + more;
            assert!(all <= limit as u64 + back || next_hour, "{NO_EXCUSE}: {caller:?} got {all}");
            if admitted < limit && !next_hour {
                early.push(format!("{caller:?} was let through only {admitted} times"));
            }
        }
        fleet.comes_together(TOGETHER);
        let alone = modes.end();
        fleet.assert_unharmed();
        complaints.extend(without_cause(&alone, TIMEOUT));
        assert!(early.is_empty() || !alone.is_empty(), "{}", early.join("\n"));
        ((), complaints)
    });
}
