//! The shared state of gateways: the seed, the register and the clock.

use diana_policy::Quota;
use diana_policy::decision::Retry;
use diana_policy::key::Seed;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::{Login, Pipeline, ScriptAnswer};
use diana_redis::shard::{Shards, Tags};

use kit::rules::{Rule, pipeline};
use kit::server::Server;

const NOW: u64 = 1_700_000_000 * SECOND;

#[test]
fn first_gateway_chooses_the_seed() {
    let server = Server::start();
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let first = pipeline(Some(NOW), vec![rule.charge(1, 1, 0)]);
    let second = Pipeline { seed: Seed { k0: 3, k1: u64::MAX }, gateway: 2, ..first.clone() };
    assert_eq!(server.decide(&first).asks[0].rules[0].remaining, 9);
    let Ok(ScriptAnswer::Seed(Seed { k0: 1, k1: 2 })) = server.ask(&second, &Login::default())
    else {
        panic!("the second gateway was not told the seed");
    };
    let decided = server.decide(&first);
    assert_eq!(decided.asks[0].rules[0].remaining, 8, "it was charged under the wrong seed");
    assert_eq!(decided.gateways, 1);
    // Another namespace is another fleet.
    let other = Pipeline { tags: Tags::new("other", Shards::ONE), ..second.clone() };
    assert_eq!(server.decide(&other).asks[0].rules[0].remaining, 9);
    // After a loss of all data, the first gateway writes its seed again.
    server.command(&["FLUSHALL"]);
    assert_eq!(server.decide(&first).asks[0].rules[0].remaining, 9);
    assert!(matches!(server.ask(&second, &Login::default()), Ok(ScriptAnswer::Seed(_))));
}

#[test]
fn gateways_are_counted_while_they_call() {
    let server = Server::start();
    let call = |gateway, after| {
        server.decide(&Pipeline { gateway, ..pipeline(Some(NOW + after), vec![]) }).gateways
    };
    assert_eq!([call(1, 0), call(2, 0), call(u64::MAX, SECOND), call(1, SECOND)], [1, 2, 3, 3]);
    assert_eq!(call(1, 5 * SECOND - 1), 3);
    assert_eq!(call(1, 5 * SECOND), 2, "one has not called for five seconds");
    assert_eq!(call(1, 6 * SECOND), 1);
    assert_eq!(call(2, 0), 2, "a clock that stepped back forgets nobody");
}

#[test]
fn other_rules_of_a_namespace_are_reported() {
    let server = Server::start();
    let call = |gateway, rules, after| {
        let call = pipeline(Some(NOW + after), vec![]);
        server.decide(&Pipeline { gateway, rules, ..call }).is_mixed
    };
    assert_eq!(call(1, Some(7), 0), Some(false));
    assert_eq!(call(2, Some(7), 0), Some(false), "the same rules");
    assert_eq!(call(3, None, 0), None, "no report");
    assert_eq!(call(2, Some(8), SECOND), Some(true));
    assert_eq!(call(1, Some(7), 2 * SECOND), Some(true));
    assert_eq!(call(1, Some(7), 7 * SECOND), Some(false), "the others are gone");
}

#[test]
fn highest_ordinal_of_a_gateway_is_returned() {
    let server = Server::start();
    let call = |gateway, ordinal, after| {
        let call = pipeline(Some(NOW + after), vec![]);
        server.decide(&Pipeline { gateway, ordinal, ..call }).latest_ordinal
    };
    assert_eq!([call(1, Some(3), 0), call(1, Some(4), 0)], [Some(0), Some(3)]);
    assert_eq!(call(2, Some(9), 0), Some(0), "another gateway");
    assert_eq!(call(1, None, 0), None);
    assert_eq!([call(1, Some(2), 0), call(1, Some(5), 0)], [Some(4), Some(4)], "a late call");
    let of_rules = Pipeline { rules: Some(7), ..pipeline(Some(NOW), vec![]) };
    let both = server.decide(&Pipeline { gateway: 1, ordinal: Some(6), ..of_rules });
    assert_eq!((both.is_mixed, both.latest_ordinal), (Some(false), Some(5)));
    for value in ["x", "-3", "1.5", "1e400"] {
        for key in server.keys("*:ordinal:*1") {
            server.command(&["SET", &key, value]);
        }
        assert_eq!([call(1, Some(7), 0), call(1, Some(8), 0)], [Some(0), Some(7)], "{value}");
    }
}

#[test]
fn redis_reads_its_own_clock() {
    let server = Server::start();
    let (one, two) = (Quota::new(Unit::Hour, 1), Quota::new(Unit::Second, 2));
    let minute = 60 * SECOND;
    for (short, quota) in [("W", one), ("SW", one), ("TB", one), ("LB", two)] {
        let rule = Rule::new(short, quota);
        let ask = || server.decide(&pipeline(None, vec![rule.charge(1, 1, 0)])).asks.remove(0);
        server.command(&["FLUSHALL"]);
        assert_eq!(ask().wait, Some(0), "{short}");
        let then = ask();
        if short == "LB" {
            assert!(then.wait.is_some_and(|wait| wait <= 500_000 && wait > 0), "{:?}", then.wait);
            continue;
        }
        // In rare cases an hour ends here.
        let Some(Retry::After(ticks)) = then.rules[0].retry else { continue };
        assert!(ticks <= 67 * minute, "{short}: {ticks}");
    }
}
