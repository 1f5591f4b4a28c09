//! Redis's clock may be set back: nobody gets a permit twice, and nobody starves.

use diana_core::policy::Quota;
use diana_core::redis::protocol::RuleReply;
use diana_core::time::{SECOND, Unit};

use kit::rules::{Rule, trip};
use kit::server::Server;

/// The first tick of a minute.
const START: u64 = 28_000_000 * MINUTE;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// What a rule says to a request when Redis tells `time`.
fn ask(server: &Server, rule: &Rule, time: u64) -> RuleReply {
    server.decide(&trip(Some(time), vec![rule.charge(1, 1, 0)])).asks[0].rules[0]
}

fn admits(server: &Server, rule: &Rule, time: u64) -> bool {
    ask(server, rule, time).retry.is_none()
}

#[test]
fn during_a_small_step_back_the_clock_stands_still() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Second, 1));
        assert!(admits(&server, &rule, START + 900_000), "{short}");
        let retry = ask(&server, &rule, START + 950_000).retry;
        for time in [START, START + 400_000, START + 949_999] {
            assert_eq!(ask(&server, &rule, time).retry, retry, "{short} at {time}");
        }
        assert_ne!(ask(&server, &rule, START + 950_001).retry, retry, "{short}");
    }
}

#[test]
fn after_a_large_step_back_the_clock_goes_on_at_once() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Second, 1));
        assert!(admits(&server, &rule, START), "{short}");
        let back = START - HOUR;
        assert!(!admits(&server, &rule, back), "{short}");
        let free = if short == "SW" { SECOND + SECOND / 10 } else { SECOND };
        assert!(!admits(&server, &rule, back + free - 1), "{short}");
        assert!(admits(&server, &rule, back + free), "{short} holds its callers for an hour");
        // And on when it is set right again, which nobody can tell from an hour without a call.
        assert!(admits(&server, &rule, START + 2 * SECOND), "{short}");
    }
}

#[test]
fn a_window_that_the_clock_comes_back_to_is_not_opened_again() {
    let server = Server::start();
    let rule = Rule::new("W", Quota::new(Unit::Minute, 1));
    assert!(admits(&server, &rule, START + 50 * SECOND));
    // Others call in the next window, and then the clock is set back into this one.
    server.decide(&trip(Some(START + 65 * SECOND), vec![]));
    assert!(!admits(&server, &rule, START + 30 * SECOND));
    assert!(!admits(&server, &rule, START + 59 * SECOND));
    assert!(admits(&server, &rule, START + MINUTE));
}

#[test]
fn a_step_back_forgets_no_gateway_and_keeps_none() {
    let server = Server::start();
    let call = |gateway, time| {
        let trip = diana_core::redis::protocol::Trip { gateway, ..trip(Some(time), vec![]) };
        server.decide(&trip).gateways
    };
    assert_eq!([call(1, START), call(2, START), call(3, START - HOUR)], [1, 2, 3]);
    assert_eq!(call(3, START - HOUR + 5 * SECOND), 1);
}

#[test]
fn a_lost_clock_is_a_lost_state() {
    let server = Server::start();
    for short in ["W", "SW", "TB", "LB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Second, 1));
        ask(&server, &rule, START);
        let counter = server.keys("diana:*:n").remove(0);
        server.command(&["DEL", "diana:{2:test}:clock", &counter]);
        let decided = server.decide(&trip(Some(START - 1), vec![rule.charge(1, 1, 0)]));
        assert_eq!(decided.corrupt, 1, "{short} believes what lies in the future");
    }
}
