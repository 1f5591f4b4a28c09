//! Windows of months, of years and of days with a change of clocks, by gateways whose wall clocks are behind or ahead of Redis's.
//! Redis has no calendar, but decides by its own clock.

use diana_policy::Quota;
use diana_policy::decision::Retry;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_redis::protocol::Pipeline;
use kit::choices::{Choices, Tried, try_all};
use kit::oracle::history::History;
use kit::oracle::{Promise, oracle};
use kit::rules::{Rule, at, pipeline};
use kit::server::Server;
use kit::zones::zone;

use super::depth;

/// The ends of January and of February 2027 and of the year in UTC, and of a day in central Europe before one with 23 hours.
const JANUARY: Micros = 1_801_440_000 * SECOND;
const FEBRUARY: Micros = 1_803_859_200 * SECOND;
const YEAR: Micros = 1_830_297_600 * SECOND;
const MARCH: Micros = 1_806_188_400 * SECOND;

/// How far the clocks are apart.
const APART: Micros = 2 * SECOND;

/// A world of requests, each a tick before the next edge of the oracle, at it, or at once.
fn world(server: &Server, (rule, edge): &(Rule, Micros), requests: usize, choices: &mut Choices) {
    server.command(&["FLUSHALL"]);
    let (oracle, quota) = (oracle("W"), &rule.case.quota);
    let mut now = [edge - 1, *edge, edge + 1][choices.pick(3)];
    let (mut history, mut asked) = (History::default(), Vec::new());
    for number in 0..requests {
        let [next, _] = history.edges(oracle, quota, at(now), &[1]);
        let waits = [0, next - 1, next];
        now += if number == 0 { 0 } else { waits[choices.pick(waits.len())] };
        let wall = [now, now - APART, now + APART][choices.pick(3)];
        asked.push((now, wall));
        let pipeline = Pipeline { wall, ..pipeline(Some(now), vec![rule.charge(1, 1, 0)]) };
        let reply = server.decide(&pipeline).asks.remove(0).rules[0];
        let promise = history.promise(oracle, quota, at(now), 1);
        if let Some(retry) = reply.retry {
            assert_eq!(promise, Promise::Refused, "{asked:?}");
            let [end, _] = history.edges(oracle, quota, at(now), &[1]);
            assert_eq!(retry, Retry::After(end), "{asked:?}");
        } else {
            assert_eq!(promise, Promise::Admitted { wait: 0 }, "{asked:?}");
            history.charge(quota, at(now), 0, 1);
        }
    }
}

#[test]
fn of_other_clocks() {
    let rule = |quota| Rule::new("W", quota);
    let months = || rule(Quota::new(Unit::Month, 1));
    let days = Quota { zone: zone("CET-1CEST,M3.5.0,M10.5.0/3"), ..Quota::new(Unit::Day, 1) };
    let rules = [
        (months(), JANUARY),
        (months(), FEBRUARY),
        (rule(Quota::new(Unit::Year, 1)), YEAR),
        (rule(days), MARCH),
    ];
    let server = Server::start();
    let Tried { worlds, .. } = try_all(1..=depth(), |requests, choices| {
        let rule = &rules[choices.pick(rules.len())];
        world(&server, rule, requests, choices);
    });
    println!("tried: {worlds} questions, calendars");
}
