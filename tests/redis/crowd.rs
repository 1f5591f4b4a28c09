//! Callers of a rule take bounded room in Redis, whatever they send, and none of them gets more.

use diana_core::decision::Retry;
use diana_core::key::Key;
use diana_core::policy::{Ban, Quota};
use diana_core::redis::protocol::{Back, Charge, Numbers, Refusals, RuleReply};
use diana_core::time::{SECOND, Unit};

use kit::rules::{Rule, ask_of, trip, trip_about, trip_of};
use kit::server::Server;

/// A day began a minute ago.
const START: u64 = 20_000 * 86_400 * SECOND + 60 * SECOND;

/// A name of a namespace, as long as they are.
const KEYS: u64 = 50;

fn charge(rule: &Rule, caller: u64) -> Charge {
    Charge { keys: KEYS, ..rule.charge(caller, 1, 0) }
}

fn say(server: &Server, now: u64, charge: Charge) -> RuleReply {
    server.decide(&trip(Some(now), vec![charge])).asks.remove(0).rules[0]
}

/// One request each of so many callers, in trips of a hundred. Who was told to share.
fn come(server: &Server, rule: &Rule, now: u64, callers: std::ops::Range<u64>) -> usize {
    let callers: Vec<u64> = callers.collect();
    let ask = |caller: &u64| ask_of(0, vec![charge(rule, *caller)]);
    let mut shared = 0;
    for some in callers.chunks(100) {
        let decided = server.decide(&trip_of(Some(now), some.iter().map(ask).collect()));
        assert_eq!(decided.corrupt, 0);
        shared += decided.asks.iter().filter(|ask| ask.rules[0].overflow).count();
    }
    shared
}

#[test]
fn newcomers_beyond_the_bound_share_a_thousand_buckets() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Day, 3));
        assert_eq!(come(&server, &rule, START, 0..KEYS), 0, "{short}");
        assert_eq!(come(&server, &rule, START, KEYS..5_000), 4_950, "{short}");
        assert_eq!(server.callers().len() as u64, KEYS, "{short}");
        assert_eq!(server.keys("diana:*:o*").len(), 1024, "{short}");
        // The secret, the clock, the register, and the rule's count.
        assert_eq!(server.command(&["DBSIZE"]), (KEYS + 1024 + 4).to_string(), "{short}");
        // Those who were there first keep what is theirs.
        let first = say(&server, START, charge(&rule, 0));
        assert_eq!((first.overflow, first.retry), (false, None), "{short}");
        // The others have one limit for all that share a bucket, and no leases.
        let other = Charge { want: 100, ..charge(&rule, KEYS) };
        let other = say(&server, START, other);
        assert_eq!((other.overflow, other.block), (true, 0), "{short}");
        assert!(other.retry.is_some(), "{short}: four more had its bucket");
    }
}

#[test]
fn caller_that_comes_now_and_then_is_counted_once() {
    let server = Server::start();
    for short in ["TB", "LB"] {
        // What a request takes has drained before the next one comes.
        let rule = Rule::new(short, Quota::new(Unit::Day, 86_400));
        for request in 0..50 {
            let charge = Charge { keys: 1, ..rule.charge(1, 1, 0) };
            let decided = server.decide(&trip(None, vec![charge]));
            assert!(!decided.asks[0].rules[0].overflow, "{short}: request {request}");
            server.advance(5 * SECOND + SECOND / 3);
        }
    }
}

#[test]
fn who_shared_a_bucket_never_gets_a_fresh_one() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Minute, 10));
        // Room is made by those who were there first, long before the bucket is empty.
        (0..10).for_each(|_| assert_eq!(come(&server, &rule, START, 0..KEYS), 0));
        let now = START + 50 * SECOND;
        let mut used = 0;
        while say(&server, now, charge(&rule, 9_999)).retry.is_none() {
            used += 1;
        }
        assert_eq!(used, 10, "{short}");
        let room = (1..400).find(|seconds| {
            let ask = Charge { cost: 0, ..charge(&rule, 8_888) };
            !say(&server, now + seconds * SECOND / 4, ask).overflow
        });
        let later = now + room.expect("there is never room again") * SECOND / 4;
        let own = say(&server, later, Charge { cost: 0, ..charge(&rule, 9_999) });
        let shared = say(&server, later, Charge { cost: 0, ..charge(&rule, 9_999 + 1024) });
        assert!(!own.overflow, "{short}");
        assert_eq!(own.remaining, shared.remaining, "{short}");
        // In a minute in all ten more, and what the bucket let through counts.
        let gone = u64::from(short == "W" && later / (60 * SECOND) > now / (60 * SECOND)) * 10;
        let drained = if short == "TB" { (later - now) * 10 / (60 * SECOND) + 1 } else { gone };
        assert!(own.remaining <= drained, "{short}: {} of {drained} at {later}", own.remaining);
    }
}

#[test]
fn there_is_room_again_when_callers_are_gone_and_while_they_stay_there_is_none() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Second, 3));
        come(&server, &rule, START, 0..KEYS);
        // Half of them keep coming, four seconds long.
        for quarter in 1..16 {
            let now = START + quarter * SECOND / 4;
            assert_eq!(come(&server, &rule, now, 0..KEYS / 2), 0, "{short}");
        }
        let now = START + 4 * SECOND;
        let shared = come(&server, &rule, now, 1000..1000 + KEYS);
        assert_eq!(shared as u64, KEYS / 2, "{short}: those who stayed count once each");
        // What was charged and given back whole takes no room.
        server.command(&["FLUSHALL"]);
        for caller in 0..2 * KEYS {
            let said = say(&server, START, charge(&rule, caller));
            assert!(!said.overflow, "{short}");
            let back = Back::Cost { receipt: said.receipt, term: 0, permits: 1 };
            say(&server, START, Charge { back, cost: 0, ..charge(&rule, caller) });
        }
    }
}

#[test]
fn a_ban_is_never_shared() {
    let server = Server::start();
    let ban = Ban {
        after: 1,
        within: 10 * SECOND,
        period: 60 * SECOND,
        max: 3600 * SECOND,
        halve_after: 60 * SECOND,
    };
    let refused = |caller: u64, refusals| {
        let (caller, numbers) = (Key { hash: caller, second_hash: caller }, Numbers::of_ban(&ban));
        let sets = None;
        let refusals = Refusals { fingerprint: 1, caller, numbers, refusals, keys: KEYS, sets };
        server.decide(&trip_about(Some(START), refusals)).bans[0][0]
    };
    for caller in 0..4 * KEYS {
        let said = refused(caller, 1);
        assert_eq!(said.overflow, caller >= KEYS);
        let known = refused(caller, 0).retry;
        assert_eq!(known, (caller < KEYS).then_some(Retry::After(ban.period)));
        assert_eq!(said.begins, caller < KEYS, "a ban is told that nobody remembers");
    }
    assert_eq!(server.callers().len() as u64, KEYS);
    assert_eq!(server.keys("diana:*:o*"), [""; 0]);
}

/// Bytes that Redis takes for each of many callers who came once, with all that it keeps about keys.
fn bytes_of_many(server: &Server, short: &str) -> u64 {
    let used = || {
        let info = server.command(&["INFO", "memory"]);
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    server.command(&["FLUSHALL"]);
    let (rule, before) = (Rule::new(short, Quota::new(Unit::Day, 10)), used());
    for some in 0..131_u64 {
        let ask = |caller: u64| ask_of(0, vec![rule.charge(some * 1000 + caller, 1, 0)]);
        server.decide(&trip_of(Some(START), (0..1000).map(ask).collect()));
    }
    (used() - before) / 131_000
}

#[test]
fn the_bytes_that_callers_take_are_those_that_the_docs_state() {
    let server = Server::start();
    let mut seen = Vec::new();
    for (short, most) in [("W", 200), ("SW", 240), ("TB", 200), ("LB", 200)] {
        server.command(&["FLUSHALL"]);
        let quota = Quota::new(Unit::Day, 1_000_000_000);
        let rule = Rule::new(short, quota);
        for slice in 0..12 {
            // Large numbers everywhere, and outstanding permits.
            let now = START + slice * 8_640 * SECOND + 7_777;
            let ask = |caller| {
                let one = Charge { tentative: true, ..charge(&rule, caller) };
                ask_of(0, vec![Charge { cost: 70_000_000, want: 60_000, ..one }])
            };
            server.decide(&trip_of(Some(now), (0..2 * KEYS).map(ask).collect()));
        }
        let most_of = |keys: &[String]| server.bytes_of(keys).into_iter().max().unwrap();
        let shared = most_of(&server.keys("diana:*:o*"));
        let own = most_of(&server.callers());
        assert!(own <= most && shared <= most, "{short}: {own} and {shared}");
        let count = most_of(&server.keys("diana:*:n"));
        assert!(count <= 200, "{short}: {count}");
        seen.push((short, own, shared, count));
    }
    println!(
        "bytes of a caller who came once: {:?}",
        ["W", "SW", "TB"].map(|one| bytes_of_many(&server, one))
    );
    println!("bytes of a caller, of a shared bucket, and of the count: {seen:?}");
}
