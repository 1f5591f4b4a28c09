//! What goes wrong with leases where they are not counted with care.

use diana_core::policy::Quota;
use diana_core::redis::protocol::{Back, Charge, RuleReply};
use diana_core::time::{SECOND, Unit};

use kit::model::{LEASE, LONG};
use kit::rules::{Rule, block, trip};
use kit::server::Server;

/// The first tick of a term, so that leases are as long as they can be.
const START: u64 = 1_700_000_000 * SECOND;

fn a_hundred(short: &str) -> Rule {
    Rule::new(short, Quota::new(Unit::Second, 100))
}

fn ask(server: &Server, now: u64, charge: Charge) -> (bool, RuleReply) {
    let outcome = server.decide(&trip(Some(now), vec![charge])).asks.remove(0);
    (outcome.wait.is_some(), outcome.rules[0])
}

/// Takes all leases that are to be had; they are counted under the same receipt.
fn take_all(server: &Server, rule: &Rule, now: u64) -> Back {
    let mut back = Back::default();
    loop {
        let (_, opinion) = ask(server, now, rule.charge(1, 0, 1000));
        if opinion.block == 0 {
            return back;
        }
        let block = block(back) + opinion.block;
        back = Back::Block { receipt: opinion.lease, term: opinion.term, block, left: block };
    }
}

/// How many single requests are admitted.
fn spike(server: &Server, rule: &Rule, now: u64) -> u64 {
    (0..).take_while(|_| ask(server, now, rule.charge(1, 1, 0)).0).count() as u64
}

#[test]
fn a_spike_after_idleness_passes_once() {
    let server = Server::start();
    let rule = a_hundred("TB");
    let leased = take_all(&server, &rule, START);
    assert_eq!(block(leased), 50, "half of the burst may be out");
    let (_, opinion) = ask(&server, START, rule.charge(1, 0, 0));
    assert_eq!(opinion.remaining, 50);
    // The bucket would be full again, were the leases not out; their holder may spend them now.
    assert_eq!(spike(&server, &rule, START + 2 * LONG - 1), 50);
}

#[test]
fn who_dies_holds_nothing_back_for_longer_than_two_terms() {
    let server = Server::start();
    let quota = Quota { burst: Some(100), ..Quota::new(Unit::Second, 1000) };
    let rule = Rule::new("TB", quota);
    take_all(&server, &rule, START);
    // Others are busy meanwhile and renew theirs.
    for tenth in 1..20 {
        let now = START + tenth * LONG / 10;
        let (_, opinion) = ask(&server, now, rule.charge(1, 8, 8));
        let RuleReply { lease: receipt, term, block, .. } = opinion;
        let back = Back::Block { receipt, term, block, left: 0 };
        ask(&server, now, Charge { back, ..rule.charge(1, 0, 0) });
    }
    let over = START + 2 * LONG;
    assert_eq!(block(take_all(&server, &rule, over - 1)), 0);
    // Fifty drain first.
    assert_eq!(block(take_all(&server, &rule, over + SECOND / 20)), 50);
}

#[test]
fn what_is_given_back_is_there_at_once() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = a_hundred(short);
        let (_, lease) = ask(&server, START, rule.charge(1, 1, 12));
        assert_eq!((lease.block, lease.remaining), (12, 87));
        let term = lease.term;
        let back = Back::Block { receipt: lease.lease, term, block: 12, left: 9 };
        let (_, opinion) = ask(&server, START + 10, Charge { back, ..rule.charge(1, 0, 0) });
        assert_eq!(opinion.remaining, 96);
        let back = Back::Cost { receipt: lease.receipt, term: 0, permits: 1 };
        let (_, opinion) = ask(&server, START + 10, Charge { back, ..rule.charge(1, 0, 0) });
        assert_eq!(opinion.remaining, 97, "the cost of a request comes back too");
    }
    // What a bucket does not count as out it does not take back.
    let rule = a_hundred("TB");
    server.command(&["FLUSHALL"]);
    let (_, lease) = ask(&server, START, rule.charge(1, 88, 1));
    let back = Back::Block { receipt: lease.lease, term: lease.term, block: 1, left: 1 };
    for (after, remaining) in [(0, 12), (0, 12), (SECOND, 100)] {
        let (_, opinion) = ask(&server, START + after, Charge { back, ..rule.charge(1, 0, 0) });
        assert_eq!(opinion.remaining, remaining, "{after}");
    }
}

#[test]
fn a_block_is_at_most_what_is_wanted_and_left() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = a_hundred(short);
        for (cost, want, block) in [(0, 12, 12), (58, 1000, 30), (0, 1000, 0)] {
            let (_, opinion) = ask(&server, START, rule.charge(1, cost, want));
            assert_eq!(opinion.block, block, "{short}, {} left", opinion.remaining);
        }
        assert_eq!(spike(&server, &rule, START), 0);
    }
}

#[test]
fn nothing_is_leased_of_a_queue_nor_of_a_single_token() {
    let server = Server::start();
    let held = Quota { max_delay: Some(SECOND), ..Quota::new(Unit::Second, 100) };
    let small = Quota { burst: Some(1), ..Quota::new(Unit::Second, 100) };
    let rules = [a_hundred("LB"), Rule::new("TB", held), Rule::new("TB", small)];
    for (fingerprint, rule) in (0..).zip(rules) {
        let rule = Rule { fingerprint, ..rule };
        assert_eq!(block(take_all(&server, &rule, START)), 0);
        assert_eq!(ask(&server, START, rule.charge(1, 1, 1000)).1.block, 0);
    }
}

#[test]
fn a_lease_ends_with_what_it_was_charged_to() {
    let server = Server::start();
    for (short, at, spend) in [
        ("W", 880_000, LEASE),
        ("W", 970_000, 30_000),
        ("SW", 300_000, LEASE),
        ("SW", 370_000, 30_000),
        ("TB", 370_000, LEASE),
    ] {
        server.command(&["FLUSHALL"]);
        let (_, opinion) = ask(&server, START + at, a_hundred(short).charge(1, 1, 10));
        assert_eq!(opinion.spend, spend, "{short}");
    }
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Day, 100));
        // Wherever in a term it is charged.
        for at in [0, LONG - 1] {
            let (_, opinion) = ask(&server, START + at, rule.charge(1, 1, 10));
            assert_eq!((opinion.block, opinion.spend), (10, LEASE), "{short}");
        }
    }
}
