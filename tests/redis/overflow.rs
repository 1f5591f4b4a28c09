//! The callers of a rule take bounded memory in Redis, whatever they send, and none of them gets
//! more permits.

use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{Ban, MAX_PERMITS, Quota};
use diana_redis::protocol::{Charge, Numbers, Refusals, RuleReply};

use kit::rules::{Rule, ask_of, ban_pipeline, pipeline, pipeline_of_asks};
use kit::server::Server;

/// A minute after the beginning of a day.
const START: u64 = 20_000 * 86_400 * SECOND + 60 * SECOND;

/// The maximum number of callers with a separate state.
const KEYS: u64 = 50;

fn charge(rule: &Rule, caller: u64) -> Charge {
    Charge { keys: KEYS, ..rule.charge(caller, 1, 0) }
}

fn decide(server: &Server, now: u64, charge: Charge) -> RuleReply {
    server.decide(&pipeline(Some(now), vec![charge])).asks.remove(0).rules[0]
}

/// Sends one request of each caller, in batches of a hundred. Returns the number of callers that
/// shared a state.
fn send_callers(server: &Server, rule: &Rule, now: u64, callers: std::ops::Range<u64>) -> usize {
    let callers: Vec<u64> = callers.collect();
    let ask = |caller: &u64| ask_of(0, vec![charge(rule, *caller)]);
    let mut shared = 0;
    for some in callers.chunks(100) {
        let decided = server.decide(&pipeline_of_asks(Some(now), some.iter().map(ask).collect()));
        assert_eq!(decided.corrupt, 0);
        shared += decided.asks.iter().filter(|ask| ask.rules[0].overflow).count();
    }
    shared
}

#[test]
fn callers_beyond_the_bound_share_a_thousand_buckets() {
    let server = Server::start();
    for short in ["W", "SW", "TB"] {
        server.command(&["FLUSHALL"]);
        let rule = Rule::new(short, Quota::new(Unit::Day, 3));
        assert_eq!(send_callers(&server, &rule, START, 0..KEYS), 0, "{short}");
        assert_eq!(send_callers(&server, &rule, START, KEYS..5_000), 4_950, "{short}");
        assert_eq!(server.callers().len() as u64, KEYS, "{short}");
        assert_eq!(server.keys("diana:*:o*").len(), 1024, "{short}");
        // The secret, the clock, the register, and the rule's count.
        assert_eq!(server.command(&["DBSIZE"]), (KEYS + 1024 + 4).to_string(), "{short}");
        // The first callers keep their states.
        let first = decide(&server, START, charge(&rule, 0));
        assert_eq!((first.overflow, first.retry), (false, None), "{short}");
        // The others share the limit of their overflow bucket, and get no leases.
        let other = Charge { want: 100, ..charge(&rule, KEYS) };
        let other = decide(&server, START, other);
        assert_eq!((other.overflow, other.block), (true, 0), "{short}");
        assert!(other.retry.is_some(), "{short}: four more had its bucket");
    }
}

/// Pairs of versions of one rule, as gateways have them during a change of the rules.
fn versions() -> Vec<[Rule; 2]> {
    let quota = |rpu| Quota::new(Unit::Day, rpu);
    let with = |short, one, other| [Rule::new(short, one), Rule::new(short, other)];
    let delayed = |delay| Quota { max_delay: Some(delay * SECOND), ..quota(1_000) };
    vec![
        with(
            "TB",
            Quota { burst: Some(10), ..quota(100) },
            Quota { burst: Some(100), ..quota(100) },
        ),
        with("TB", quota(100), quota(7)),
        with("TB", delayed(100), delayed(9_000)),
        with("W", quota(3), Quota { longest: 9 * 86_400 * SECOND, ..quota(3) }),
        with("SW", quota(3), Quota { longest: 9 * 86_400 * SECOND, ..quota(3) }),
        with("W", quota(3), quota(MAX_PERMITS)),
        with("SW", quota(3), quota(MAX_PERMITS)),
        with("LB", delayed(100), delayed(9_000)),
        with("LB", delayed(9_000), Quota { rpu: 20, slowest: Some(10), ..delayed(9_000) }),
    ]
}

/// A canary or a second region has other numbers for the same callers.
#[test]
fn two_versions_of_a_rule_have_one_bound() {
    let server = Server::start();
    for versions in versions() {
        let what = format!(
            "{} {:?}",
            versions[0].entry.short,
            versions.each_ref().map(|it| it.case.quota)
        );
        server.command(&["FLUSHALL"]);
        for chunk in 0..125 {
            let callers = chunk * 20..(chunk + 1) * 20;
            send_callers(&server, &versions[chunk as usize % 2], START + chunk * 1_000, callers);
        }
        assert_eq!(server.callers().len() as u64, KEYS, "{what}");
        assert!(server.keys("diana:*:o*").len() <= 1024, "{what}");
    }
}

/// Both versions change the lifetime of the value of one caller, which stays one caller.
#[test]
fn two_versions_of_a_rule_count_a_caller_once() {
    let server = Server::start();
    for versions in versions() {
        let what = format!(
            "{} {:?}",
            versions[0].entry.short,
            versions.each_ref().map(|it| it.case.quota)
        );
        server.command(&["FLUSHALL"]);
        let mut now = START;
        for round in 0..6 {
            now += round * 997 * SECOND;
            let shared = send_callers(&server, &versions[round as usize % 2], now, 0..KEYS);
            assert_eq!(shared, 0, "{what} in round {round}");
        }
        assert_eq!(send_callers(&server, &versions[0], now, KEYS..KEYS + 5), 5, "{what}");
        // The values and their count end together, so others find room.
        server.command(&["FLUSHALL"]);
        send_callers(&server, &versions[0], START, 0..KEYS);
        send_callers(&server, &versions[1], START, 0..KEYS);
        let later = START + 1_000 * 86_400 * SECOND;
        let ask = |caller| decide(&server, later, charge(&versions[0], caller)).overflow;
        assert!((1_000..1_000 + KEYS).all(|caller| !ask(caller)), "{what}");
    }
}

#[test]
fn ban_is_never_shared() {
    let server = Server::start();
    let ban = Ban {
        after: 1,
        within: 10 * SECOND,
        period: 60 * SECOND,
        max: 3600 * SECOND,
        halve_after: 60 * SECOND,
        is_shadow: false,
    };
    let refused = |caller: u64, refusals| {
        let (caller, numbers) = (Key { hash: caller, second_hash: caller }, Numbers::of_ban(&ban));
        let sets = None;
        let refusals =
            Refusals { fingerprint: 1, caller, numbers, refusals, keys: KEYS, sets, shadow: false };
        server.decide(&ban_pipeline(Some(START), refusals)).bans[0][0]
    };
    for caller in 0..4 * KEYS {
        let reply = refused(caller, 1);
        assert_eq!(reply.overflow, caller >= KEYS);
        let known = refused(caller, 0).retry;
        assert_eq!(known, (caller < KEYS).then_some(Retry::After(ban.period)));
        assert_eq!(reply.begins, caller < KEYS, "a ban is reported that is not stored");
    }
    assert_eq!(server.callers().len() as u64, KEYS);
    assert_eq!(server.keys("diana:*:o*"), [""; 0]);
}

/// Memory of Redis per caller for many callers with one request each, including the overhead of
/// keys.
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
        server.decide(&pipeline_of_asks(Some(START), (0..1000).map(ask).collect()));
    }
    (used() - before) / 131_000
}

#[test]
fn callers_take_the_documented_bytes() {
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
            server.decide(&pipeline_of_asks(Some(now), (0..2 * KEYS).map(ask).collect()));
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
