//! Bans in Redis, compared with the step in Rust.

use diana_policy::ban::WORDS;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{Ban, Quota};
use diana_redis::protocol::{Ask, Numbers, Question, Refusals};
use fastrand::Rng;

use kit::rules::{Rule, ban_pipeline, pipeline_of_asks, today};
use kit::seed;
use kit::server::Server;

/// Counts refusals of a caller. With zero it only reads.
pub fn count(ban: &Ban, caller: u64, refusals: u64) -> Refusals {
    Refusals {
        fingerprint: ban.fingerprint(1),
        caller: Key { hash: caller, second_hash: caller },
        numbers: Numbers::of_ban(ban),
        refusals,
        keys: 100_000,
        sets: None,
        shadow: false,
    }
}

fn random(rng: &mut Rng) -> Ban {
    let period = rng.u64(100_000..10 * SECOND);
    let max = period * [1, 2, 5, 64, 1000][rng.usize(0..5)];
    Ban {
        after: [1, 2, 3, 10][rng.usize(0..4)],
        within: rng.u64(100_000..10 * SECOND),
        period,
        max,
        halve_after: rng.u64(100_000..3 * max),
        is_shadow: false,
    }
}

fn pause(rng: &mut Rng, ban: &Ban) -> u64 {
    match rng.u8(0..20) {
        0 => rng.u64(0..2 * ban.max),
        1 => rng.u64(0..3 * ban.halve_after),
        2..4 => rng.u64(0..2 * ban.within),
        _ => rng.u64(0..ban.within / ban.after + 2),
    }
}

#[test]
fn redis_bans_like_the_step_in_rust() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let (mut begun, mut looks) = (0, 0);
    for _ in 0..60 {
        let ban = random(&mut rng);
        let (mut states, mut now) = ([[0; WORDS]; 2], today(&mut rng));
        for _ in 0..100 {
            now += pause(&mut rng, &ban);
            let caller = rng.usize(0..2);
            let refusals = [0, 1, 1, 2][rng.usize(0..4)];
            if rng.u8(0..12) == 0 {
                let resets = Refusals { sets: Some(0), ..count(&ban, caller as u64, 0) };
                server.decide(&ban_pipeline(Some(now), resets));
                Ban::reset(&mut states[caller], now);
            }
            let asked = ban_pipeline(Some(now), count(&ban, caller as u64, refusals));
            let decided = server.decide(&asked);
            let state = &mut states[caller];
            let begins = refusals > 0 && ban.count(state, now, refusals);
            let left = ban.left(Ban::until(state), now);
            let reply = decided.bans[0][0];
            assert_eq!((decided.corrupt, reply.left), (0, left), "{ban:?}");
            if refusals > 0 {
                assert_eq!(reply.begins, begins);
                assert_eq!(decided.asks[0].wait, Some(0), "counting is refused to nobody");
            } else {
                looks += usize::from(left > 0);
                assert_eq!(reply.retry, (left > 0).then_some(Retry::After(left)));
            }
            begun += usize::from(begins);
        }
        server.command(&["FLUSHALL"]);
    }
    assert!(begun > 200 && looks > 100, "{begun} {looks}");
}

const BAN: Ban = Ban {
    after: 3,
    within: 10 * SECOND,
    period: 60 * SECOND,
    max: 60 * SECOND,
    halve_after: 60 * SECOND,
    is_shadow: false,
};

#[test]
fn banned_caller_is_not_charged() {
    let server = Server::start();
    let now = 1_700_000_000 * SECOND;
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let ask = |caller| {
        let look = Question::Ban(count(&BAN, caller, 0));
        Ask { questions: vec![Question::Rule(rule.charge(caller, 1, 0)), look], ..Ask::default() }
    };
    let count = Ask { questions: vec![Question::Ban(count(&BAN, 1, 3))], ..Ask::default() };
    let decided = server.decide(&pipeline_of_asks(Some(now), vec![ask(1), count, ask(1), ask(2)]));
    let waits: Vec<_> = decided.asks.iter().map(|ask| ask.wait).collect();
    assert_eq!(waits, [Some(0), Some(0), None, Some(0)]);
    let remaining = [0, 2, 3].map(|ask| decided.asks[ask].rules[0].remaining);
    assert_eq!((remaining, decided.bans[1][0].left), ([9, 9, 9], BAN.period));
    assert_eq!(decided.bans[2][0].retry, Some(Retry::After(BAN.period)));
    // The ban and its key in Redis expire.
    let later = server.decide(&pipeline_of_asks(Some(now + BAN.period), vec![ask(1)])).asks;
    assert_eq!((later[0].wait, later[0].rules[0].remaining), (Some(0), 8));
}

/// It does not refuse the other questions of its ask, and the reply reports it.
#[test]
fn ban_in_shadow_refuses_no_charge() {
    let server = Server::start();
    let now = 1_700_000_000 * SECOND;
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let ban = Ban { is_shadow: true, ..BAN };
    let refusals = |refusals| Refusals { shadow: true, ..count(&ban, 1, refusals) };
    let look = || Question::Ban(refusals(0));
    let ask =
        || Ask { questions: vec![Question::Rule(rule.charge(1, 1, 0)), look()], ..Ask::default() };
    let count = Ask { questions: vec![Question::Ban(refusals(3))], ..Ask::default() };
    let decided = server.decide(&pipeline_of_asks(Some(now), vec![count, ask(), ask()]));
    let remaining =
        [1, 2].map(|ask| (decided.asks[ask].wait, decided.asks[ask].rules[0].remaining));
    assert_eq!(remaining, [(Some(0), 9), (Some(0), 8)]);
    let left = [0, 1, 2].map(|ask| decided.bans[ask][0].left);
    assert_eq!(left, [ban.period; 3]);
}

/// Replies are correct for bans of any length.
#[test]
fn operator_bans_for_any_time_and_unbans() {
    let server = Server::start();
    let now = 1_700_000_000 * SECOND;
    let say = |sets, now| {
        let refusals = Refusals { sets, ..count(&BAN, 1, 0) };
        server.decide(&ban_pipeline(Some(now), refusals)).bans[0][0].left
    };
    for length in [1, SECOND, BAN.max, 0] {
        assert_eq!(say(Some(length), now), length);
        assert_eq!(say(None, now), length, "it is still so");
    }
    assert_eq!(say(Some(BAN.max), now), BAN.max);
    assert_eq!(say(None, now + BAN.max), 0);
}

#[test]
fn foreign_value_bans_no_caller() {
    let server = Server::start();
    let now = 1_700_000_000 * SECOND;
    server.decide(&ban_pipeline(Some(now), count(&BAN, 1, 3)));
    let key = server.callers().remove(0);
    for value in ["", "x", "0123456789"] {
        server.command(&["SET", &key, value]);
        let decided = server.decide(&ban_pipeline(Some(now), count(&BAN, 1, 0)));
        assert_eq!((decided.corrupt, decided.asks[0].wait), (1, Some(0)), "{value}");
    }
}
