//! Callers of a rule that has room for one: the others have buckets, and when one of them gets room, it keeps what it has used.
//! Each is decided about like a caller alone, since no two of these have the same bucket.

use diana_policy::Quota;
use diana_policy::decision::Retry;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_redis::protocol::{Charge, Pipeline};
use kit::choices::{Choices, Tried, try_all};
use kit::oracle::history::History;
use kit::oracle::{Promise, oracle};
use kit::rules::{Rule, at, pipeline};
use kit::server::Server;

use super::depth;

/// The first one has the only room at the beginning.
const CALLERS: usize = 3;

/// A permit, and all of a bucket.
const COSTS: [u64; 2] = [1, 8];

/// The time before a request: the last one ends the first caller's value.
const WAITS: [Micros; 3] = [0, SECOND, 5 * SECOND];

fn world(server: &Server, rule: &Rule, requests: usize, choices: &mut Choices) {
    server.rewind();
    let (oracle, quota) = (oracle(rule.entry.short), &rule.case.quota);
    let mut callers = vec![History::default(); CALLERS];
    let mut asked = Vec::new();
    for number in 0..=requests {
        let (wait, caller, cost) = match number {
            0 => (0, 0, 1),
            _ => {
                let wait = WAITS[choices.pick(WAITS.len())];
                (wait, choices.pick(CALLERS), COSTS[choices.pick(COSTS.len())])
            }
        };
        asked.push((wait, caller, cost));
        server.advance(wait);
        let now = at(server.now());
        let charge = Charge { keys: 1, ..rule.charge(caller as u64, cost, 0) };
        let pipeline = Pipeline { wall: now.wall, ..pipeline(None, vec![charge]) };
        let reply = server.decide(&pipeline).asks.remove(0).rules[0];
        let history = &mut callers[caller];
        let promise = history.promise(oracle, quota, now, cost);
        match reply.retry {
            None => {
                assert_eq!(promise, Promise::Admitted { wait: 0 }, "{asked:?}");
                history.charge(quota, now, 0, cost);
            }
            Some(Retry::After(ticks)) => {
                assert_eq!(promise, Promise::Refused, "{asked:?}");
                let later = |ticks| history.promise(oracle, quota, now.later(ticks), cost);
                assert_ne!(later(ticks), Promise::Refused, "{ticks} is too early: {asked:?}");
                assert_eq!(later(ticks - 1), Promise::Refused, "{ticks} is too late: {asked:?}");
            }
            Some(retry) => assert_eq!((promise, retry), (Promise::Refused, Retry::Never)),
        }
    }
}

#[test]
fn without_room() {
    let quota = |rpu| Quota::new(Unit::Second, rpu);
    let rules = [
        Rule::new("TB", Quota { burst: Some(8), ..quota(1) }),
        Rule::new("SW", Quota { slices: Some(2), unit: Unit::Minute, ..quota(8) }),
    ];
    let server = Server::start();
    let Tried { worlds, .. } = try_all(1..=depth(), |requests, choices| {
        let rule = &rules[choices.pick(rules.len())];
        world(&server, rule, requests, choices);
    });
    println!("tried: {worlds} questions, callers without room");
}
