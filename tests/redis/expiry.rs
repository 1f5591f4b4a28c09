//! Keys expire, and never before their state does.

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::RuleReply;
use fastrand::Rng;
use kit::rules::counted_in_redis;

use kit::laws::stream;
use kit::model::{Asked, Model};
use kit::rules::{AHEAD, Rule, at, pipeline, today};
use kit::seed;
use kit::server::Server;

/// Microseconds until a key expires.
pub fn time_left(server: &Server, key: &str) -> u64 {
    server.command(&["PTTL", key]).parse::<u64>().unwrap() * 1000
}

#[test]
fn key_lives_until_its_last_slice_ends() {
    let server = Server::start();
    let start = seed::next();
    let mut checked = 0;
    for number in 0..80 {
        let seed = start.wrapping_add(number);
        let mut rng = Rng::with_seed(seed);
        let entry = counted_in_redis(number as usize);
        let rules = [Rule::random(entry, &mut rng)];
        println!("{} seed {seed}: {:?}", entry.short, rules[0].case.quota);
        let mut model = Model::default();
        server.command(&["FLUSHALL"]);
        for (now, cost) in stream::from(at(today(&mut rng)), &rules[0].case, &mut rng, 20) {
            let time = now.mono - if rng.u8(0..10) == 0 { rng.u64(0..3_000_000) } else { 0 };
            let (caller, unit_cost) = (1, rules[0].case.quota.cost);
            let want = if rng.bool() { 1000 } else { 0 };
            let asked =
                Asked { caller, cost, unit_cost, want, ahead: AHEAD, keys: 1, ..Asked::default() };
            let now = model.at(time);
            model.ask(&rules, now, 0, &[asked]);
            let life = model.life(&rules, 0, caller, now);
            let pipeline = pipeline(Some(time), vec![rules[0].charge(caller, cost, want)]);
            let admitted = server.decide(&pipeline).asks[0].wait.is_some();
            let [key] = &server.callers()[..] else { continue };
            // Beyond the range of the script's numbers.
            if !admitted || now.mono + life + SECOND > 1 << 53 {
                continue;
            }
            let left = time_left(&server, key);
            assert!(left >= life + 998_000, "{left} for {life} µs");
            let slice = rules[0].slice(unit_cost);
            assert!(left <= life + SECOND + slice + 1_000, "{left} for {life} µs, {slice}");
            checked += 1;
        }
    }
    assert!(checked > 400, "{checked} is too few");
}

#[test]
fn bucket_is_kept_while_permits_are_outstanding() {
    let server = Server::start();
    // Its debt has drained within a millisecond.
    let quota = Quota { burst: Some(800), ..Quota::new(Unit::Second, 1_000_000) };
    let decided = server.decide(&pipeline(None, vec![Rule::new("TB", quota).charge(1, 1, 1000)]));
    let RuleReply { block, spend, .. } = decided.asks[0].rules[0];
    assert!(block > 0);
    let [key] = &server.callers()[..] else { panic!("not one key") };
    let left = time_left(&server, key);
    assert!(left >= spend + 998_000, "{left} for a lease of {spend} µs");
}

#[test]
fn only_the_seed_and_the_clock_stay() {
    let server = Server::start();
    for (fingerprint, short) in (0..).zip(["W", "SW", "TB", "LB"]) {
        let rule = Rule { fingerprint, ..Rule::new(short, Quota::new(Unit::Second, 1000)) };
        let decided = server.decide(&pipeline(None, vec![rule.charge(7, 5, 50)]));
        assert_eq!(decided.asks[0].wait, Some(0), "{short}");
    }
    assert_eq!(server.command(&["DBSIZE"]), "11");
    server.advance(5 * SECOND + SECOND / 2);
    let mut left = server.keys("*");
    left.sort();
    assert_eq!(left, ["diana:{2:test}:clock", "diana:{2:test}:seed"]);
}
