//! Redis's clock may step back: no caller gets a permit twice, and none is refused forever.

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::RuleReply;

use kit::rules::{Rule, pipeline};
use kit::server::Server;

/// The first tick of a minute.
const START: u64 = 28_000_000 * MINUTE;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The reply to a request under a rule, at the wall clock `time` of Redis.
fn ask(server: &Server, rule: &Rule, time: u64) -> RuleReply {
    server.decide(&pipeline(Some(time), vec![rule.charge(1, 1, 0)])).asks[0].rules[0]
}

#[test]
fn step_back_keeps_gateways_and_their_expiry() {
    let server = Server::start();
    let call = |gateway, time| {
        let pipeline = diana_redis::protocol::Pipeline { gateway, ..pipeline(Some(time), vec![]) };
        server.decide(&pipeline).gateways
    };
    assert_eq!([call(1, START), call(2, START), call(3, START - HOUR)], [1, 2, 3]);
    assert_eq!(call(3, START - HOUR + 5 * SECOND), 1);
}

#[test]
fn lost_clock_makes_later_states_corrupt() {
    let server = Server::start();
    for short in ["W", "SW", "TB", "LB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Second, 1));
        ask(&server, &rule, START);
        let counter = server.keys("diana:*:n").remove(0);
        server.command(&["DEL", "diana:{2:test}:clock", &counter]);
        let decided = server.decide(&pipeline(Some(START - 1), vec![rule.charge(1, 1, 0)]));
        assert_eq!(decided.corrupt, 1, "{short} believes what lies in the future");
    }
}
