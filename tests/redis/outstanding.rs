//! A refusal tells whether leases of the caller are outstanding. Without them it is final.

use diana_core::policy::Quota;
use diana_core::redis::protocol::{Back, Charge, RuleReply};
use diana_core::time::{SECOND, Unit};

use kit::model::{LEASE, LONG, TERM};
use kit::rules::{Rule, trip, trip_of};
use kit::server::Server;

/// The first tick of a term, a minute after a day began.
const START: u64 = 20_000 * 86_400 * SECOND + 60 * SECOND;

fn ten_a_day(short: &str) -> Rule {
    Rule::new(short, Quota::new(Unit::Day, 10))
}

fn say(server: &Server, now: u64, charge: Charge) -> RuleReply {
    server.decide(&trip(Some(now), vec![charge])).asks.remove(0).rules[0]
}

fn request(server: &Server, rule: &Rule, now: u64) -> RuleReply {
    say(server, now, rule.charge(1, 1, 0))
}

/// A request with a block for those that follow at once.
fn lease(server: &Server, rule: &Rule, now: u64, block: u64) -> RuleReply {
    let opinion = say(server, now, rule.charge(1, 1, block));
    assert_eq!(opinion.block, block, "{opinion:?}");
    opinion
}

fn gives_back(rule: &Rule, lease: &RuleReply, left: u64) -> Charge {
    let RuleReply { lease: receipt, term, block, .. } = *lease;
    Charge { back: Back::Block { receipt, term, block, left }, ..rule.charge(1, 0, 0) }
}

/// Uses up what there is.
fn use_up(server: &Server, rule: &Rule, now: u64) -> u64 {
    (0..).take_while(|_| request(server, rule, now).retry.is_none()).count() as u64
}

#[test]
fn a_refusal_says_so_until_the_term_of_a_lease_is_over() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = ten_a_day(short);
        let at = START + 10;
        let leased = lease(&server, &rule, at, 4);
        assert_eq!(leased.spend, LEASE, "{short}");
        use_up(&server, &rule, at);
        let refused = |after| request(&server, &rule, at + after).is_outstanding;
        assert!(refused(0) && refused(LONG) && refused(2 * LONG - 11), "{short}");
        assert!(!refused(2 * LONG), "{short}: it is final from then on");
        let retry = request(&server, &rule, at + 2 * LONG).retry;
        assert!(retry.is_some(), "{short}: a lost call costs its permits");
    }
}

#[test]
fn permits_that_come_back_fit_at_once_and_used_ones_refuse_finally() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        for (after, left) in [(0, 1), (LONG, 2), (2 * LONG - 1, 3), (5 * LONG, 2)] {
            server.command(&["FLUSHALL"]);
            let rule = ten_a_day(short);
            let leased = lease(&server, &rule, START, 4);
            let used = 1 + leased.block + use_up(&server, &rule, START);
            assert_eq!(used, 10, "{short}");
            let now = START + after;
            say(&server, now, gives_back(&rule, &leased, left));
            let had = use_up(&server, &rule, now);
            // A bucket that took them for lost has let some drain, less than one here.
            let drained = u64::from(short == "TB" && after >= 2 * LONG);
            assert!(had == left || had + drained == left, "{short}: {had} of {left} after {after}");
            assert!(!request(&server, &rule, now).is_outstanding, "{short} after {after}");
        }
    }
}

#[test]
fn a_window_that_began_since_takes_nothing_back() {
    let server = Server::start();
    let rule = Rule::new("W", Quota::new(Unit::Second, 10));
    let end = START + SECOND - LEASE;
    let leased = lease(&server, &rule, end, 4);
    let next = START + SECOND;
    let other = lease(&server, &rule, next, 4);
    use_up(&server, &rule, next);
    say(&server, next, gives_back(&rule, &leased, leased.block));
    let refused = request(&server, &rule, next);
    assert!(refused.retry.is_some(), "the new window was given what the old one had leased");
    assert!(refused.is_outstanding, "what this one has leased is still out");
    say(&server, next, gives_back(&rule, &other, 0));
    assert!(!request(&server, &rule, next).is_outstanding);
}

#[test]
fn a_tentative_charge_refuses_nobody_finally() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        for comes_back in [true, false] {
            server.command(&["FLUSHALL"]);
            let rule = Rule::new(short, Quota::new(Unit::Day, 1));
            let charge = Charge { tentative: true, ..rule.charge(1, 1, 0) };
            let charged = say(&server, START, charge);
            assert_eq!(charged.retry, None);
            let refused = request(&server, &rule, START + 1000);
            assert!(refused.retry.is_some() && refused.is_outstanding, "{short}");
            if comes_back {
                let RuleReply { receipt, term, .. } = charged;
                let back = Back::Cost { receipt, term, permits: 1 };
                say(&server, START + 2000, Charge { back, ..rule.charge(1, 0, 0) });
                let then = request(&server, &rule, START + 2000);
                // A bucket has drained a part of it, which is missing until it has drained elsewhere.
                let admitted = then.retry.is_none() || short == "TB";
                assert!(admitted, "{short}: {then:?}");
            } else {
                // It became a request like any other.
                assert!(!request(&server, &rule, START + 2 * TERM).is_outstanding, "{short}");
            }
        }
    }
}

#[test]
fn a_cost_that_was_not_tentative_takes_no_other_for_certain() {
    let server = Server::start();
    let rule = Rule::new("W", Quota::new(Unit::Day, 2));
    let tentative = || Charge { tentative: true, ..rule.charge(1, 1, 0) };
    say(&server, START, tentative());
    let certain = request(&server, &rule, START);
    let back = Back::Cost { receipt: certain.receipt, term: 0, permits: 1 };
    say(&server, START, Charge { back, ..rule.charge(1, 0, 0) });
    assert_eq!(request(&server, &rule, START).retry, None);
    assert!(request(&server, &rule, START).is_outstanding);
}

#[test]
fn a_bucket_with_a_line_takes_back_what_another_rule_refused_whoever_came_since() {
    let server = Server::start();
    // The first came when there was nothing to drain, and the last leaves nothing to wait for.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        server.command(&["FLUSHALL"]);
        let quota = Quota { max_delay: Some(SECOND), ..Quota::new(Unit::Day, 10) };
        let rule = Rule::new("TB", quota);
        let charge = |number: u64| {
            let charge = Charge { tentative: true, ..rule.charge(1, 1, 0) };
            say(&server, START + 1000 * number, charge)
        };
        let charged: Vec<RuleReply> = (0..4).map(charge).collect();
        for (number, place) in order.into_iter().enumerate() {
            let RuleReply { receipt, term, .. } = charged[place];
            let back = Back::Cost { receipt, term, permits: 1 };
            let now = START + 5000 + 1000 * number as u64;
            say(&server, now, Charge { back, ..rule.charge(1, 0, 0) });
        }
        let now = START + 10_000;
        assert_eq!(use_up(&server, &rule, now), 10, "{order:?}");
    }
}

#[test]
fn the_answer_tells_the_clock_that_never_steps_back() {
    let server = Server::start();
    let ask = |time| server.decide(&trip_of(Some(time), vec![])).now;
    assert_eq!([ask(START), ask(START - 10), ask(START + 5)], [START, START, START + 5]);
    let later = ask(START - 3600 * SECOND);
    assert!(later >= START + 5, "{later}");
}
