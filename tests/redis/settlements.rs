//! Numbered batches of settlements: each is processed once, in the order of its sender.

use diana_policy::decision::Retry;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{MAX_PERMITS, MAX_USED, Quota};
use diana_redis::protocol::{Ask, Charge, Effect, Login, Question, Script, SettlementBatch};
use fastrand::Rng;
use kit::model::rule::Rule;
use kit::rules::{pipeline, pipeline_of_asks, today};
use kit::seed;
use kit::server::Server;

/// Newly known usage is also recorded once, so that reservations remain distinct.
#[test]
fn counted_usage_is_recorded_once() {
    let server = Server::start();
    for short in ["W", "SW"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule { counts: true, ..Rule::new(short, Quota::new(Unit::Day, 10)) };
        let now = today(&mut Rng::with_seed(seed::next()));
        let ask = |charge| Ask { questions: vec![Question::Rule(charge)], ..Ask::default() };
        let decide = |asks, settles| {
            let mut pipeline = pipeline_of_asks(Some(now), asks);
            pipeline.calls[0].settles = settles;
            server.decide(&pipeline).asks.pop().unwrap().rules[0]
        };
        let charged = decide(vec![ask(rule.charge(1, 10, 0))], None);
        assert_eq!(charged.retry, None);
        let back = Effect::ReturnCost { receipt: charged.receipt, term: 0, permits: 0 };
        for _ in 0..3 {
            let batch = Charge { effect: back, counted: Some(5), ..rule.charge(1, 0, 0) };
            let asks = vec![ask(batch), ask(rule.charge(1, 5, 0))];
            let settles = SettlementBatch { sender: 1, number: 1, asks: 1 };
            assert_eq!(decide(asks, Some(settles)).retry, Some(Retry::Soon), "{short}");
        }
        let six = decide(vec![ask(rule.charge(1, 6, 0))], None).retry;
        assert!(matches!(six, Some(Retry::After(_))), "{short}: {six:?}");
    }
}

/// Debts of many requests are never a corrupt value, which would free the caller: neither for the
/// gateway that charged them, nor for one with other numbers for the rule.
#[test]
fn usage_stops_at_the_largest_number() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    for (short, counts) in [("W", false), ("W", true), ("SW", false), ("SW", true)] {
        server.command(&["FLUSHALL"]);
        let quota = |rpu| Quota { slices: Some(4), ..Quota::new(Unit::Minute, rpu) };
        let rules = [MAX_PERMITS, 1_000_000_000, 7];
        let rules = rules.map(|rpu| Rule { counts, ..Rule::new(short, quota(rpu)) });
        // The middle of a slice of 15 seconds, and of a minute.
        let now = today(&mut rng) / (60 * SECOND) * 60 * SECOND + 37 * SECOND;
        let decide = |now, charge| {
            let decided = server.decide(&pipeline_of_asks(
                Some(now),
                vec![Ask { questions: vec![Question::Rule(charge)], ..Ask::default() }],
            ));
            assert_eq!(decided.corrupt, 0, "{short}");
            decided.asks[0].rules[0]
        };
        let reserved = decide(now, rules[0].charge(1, MAX_PERMITS, 0));
        assert_eq!(reserved.retry, None);
        for number in 1..=30_u64 {
            let effect = Effect::ChargeDebt { receipt: 0, permits: MAX_PERMITS };
            let counted = counts.then_some(MAX_PERMITS);
            decide(now, Charge { effect, counted, ..rules[0].charge(1, 0, 0) });
            let read = Charge { effect: Effect::ReadUsage, ..rules[0].charge(1, 0, 0) };
            let expected = (MAX_PERMITS * (number + 1)).min(MAX_USED);
            assert_eq!(decide(now, read).charged, expected, "{short} after {number}");
            for rule in &rules {
                let reply = decide(now, rule.charge(1, 1, 0));
                let waits = if short == "W" { 23 } else { 68 };
                assert_eq!(reply.retry, Some(Retry::After(waits * SECOND)), "{short}");
                assert_eq!(reply.remaining, 0);
            }
        }
        // The reservation comes back, and the debts stay.
        let permits = MAX_PERMITS;
        let effect = Effect::ReturnCost { receipt: reserved.receipt, term: 0, permits };
        decide(now, Charge { effect, ..rules[0].charge(1, 0, 0) });
        for rule in &rules {
            assert!(decide(now, rule.charge(1, 1, 0)).retry.is_some(), "{short}");
        }
        // A later slice has debts, too, so that the sum is not exact.
        if short == "SW" {
            let effect = Effect::ChargeDebt { receipt: 0, permits: MAX_PERMITS };
            let later = now + 20 * SECOND;
            for _ in 0..12 {
                decide(later, Charge { effect, ..rules[0].charge(1, 0, 0) });
            }
            let retry = decide(later, rules[0].charge(1, 1, 0)).retry;
            assert_eq!(retry, Some(Retry::After(63 * SECOND)), "{short}");
        }
        assert_eq!(decide(now + 200 * SECOND, rules[0].charge(1, MAX_PERMITS, 0)).retry, None);
    }
}

/// A gateway of an earlier version adds debts without an end. They neither are a corrupt value nor free the caller, and the next
/// settlement ends them.
#[test]
fn earlier_version_leaves_no_corrupt_usage() {
    let server = Server::start();
    let now = today(&mut Rng::with_seed(seed::next())) / (60 * SECOND) * 60 * SECOND + 37 * SECOND;
    for (short, counts) in [("W", false), ("W", true), ("SW", false), ("SW", true)] {
        server.command(&["FLUSHALL"]);
        let quota = Quota { slices: Some(4), ..Quota::new(Unit::Minute, 1_000_000_000) };
        let rule = Rule { counts, ..Rule::new(short, quota) };
        let decide = |charge| server.decide(&pipeline(Some(now), vec![charge]));
        let debt = |permits| Charge {
            effect: Effect::ChargeDebt { receipt: 0, permits },
            counted: counts.then_some(permits),
            ..rule.charge(1, 0, 0)
        };
        for _ in 0..10 {
            decide(debt(MAX_PERMITS));
        }
        for _ in 0..100 {
            let mut early = pipeline(Some(now), vec![debt(1_000_000_000)]);
            early.calls[0].script = Script::Text;
            let text = early.encode(&Login::default());
            let place = text.windows(CAP.len()).position(|bytes| bytes == CAP).unwrap();
            let text = [&text[..place], NO_CAP, &text[place + CAP.len()..]].concat();
            let answers = early.answers(&Login::default(), &server.exchange(&text));
            assert!(answers[0].is_ok(), "{short}");
        }
        let read = || Charge { effect: Effect::ReadUsage, ..rule.charge(1, 0, 0) };
        let refused = decide(rule.charge(1, 1, 0));
        assert_eq!((refused.corrupt, refused.asks[0].rules[0].remaining), (0, 0), "{short}");
        assert!(refused.asks[0].rules[0].retry.is_some(), "{short}");
        decide(debt(1));
        let healed = decide(read());
        assert_eq!((healed.corrupt, healed.asks[0].rules[0].charged), (0, MAX_USED), "{short}");
    }
}

/// The end of usage in the script, and words of the same length for a script without it.
const CAP: &[u8] = b"USED=FAR/2-1";
const NO_CAP: &[u8] = b"USED=2^1023 ";
