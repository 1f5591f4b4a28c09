//! Bans that Redis counts, against the step in Rust; and two gateways that ban together.

mod gateway;

use diana_core::ban::WORDS;
use diana_core::decision::Retry;
use diana_core::key::Key;
use diana_core::policy::{Ban, Quota};
use diana_core::redis::protocol::{Ask, Numbers, Question, Refusals, Trip};
use diana_core::time::{SECOND, Unit};
use fastrand::Rng;
use gateway::Gateway;

use kit::rules::{Rule, today, trip_about, trip_of};
use kit::seed;
use kit::server::Server;

/// Counts so many refusals of a caller; with none it only looks.
fn count(ban: &Ban, caller: u64, refusals: u64) -> Refusals {
    Refusals {
        fingerprint: ban.fingerprint(1),
        caller: Key { hash: caller, second_hash: caller },
        numbers: Numbers::of_ban(ban),
        refusals,
        keys: 100_000,
        sets: None,
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
                let lifts = Refusals { sets: Some(0), ..count(&ban, caller as u64, 0) };
                server.decide(&trip_about(Some(now), lifts));
                Ban::lift(&mut states[caller], now);
            }
            let asked = trip_about(Some(now), count(&ban, caller as u64, refusals));
            let decided = server.decide(&asked);
            let state = &mut states[caller];
            let begins = refusals > 0 && ban.count(state, now, refusals);
            let left = ban.left(Ban::until(state), now);
            let said = decided.bans[0][0];
            assert_eq!((decided.corrupt, said.left), (0, left), "{ban:?}");
            if refusals > 0 {
                assert_eq!((said.begins, said.recent), (begins, ban.recent(state, now)));
                assert_eq!(decided.asks[0].wait, Some(0), "counting is refused to nobody");
            } else {
                looks += usize::from(left > 0);
                assert_eq!(said.retry, (left > 0).then_some(Retry::After(left)));
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
};

#[test]
fn who_is_banned_is_charged_nowhere() {
    let server = Server::start();
    let now = 1_700_000_000 * SECOND;
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let ask = |caller| {
        let look = Question::Ban(count(&BAN, caller, 0));
        Ask { delay: 0, questions: vec![Question::Rule(rule.charge(caller, 1, 0)), look] }
    };
    let count = Ask { delay: 0, questions: vec![Question::Ban(count(&BAN, 1, 3))] };
    let decided = server.decide(&trip_of(Some(now), vec![ask(1), count, ask(1), ask(2)]));
    let waits: Vec<_> = decided.asks.iter().map(|ask| ask.wait).collect();
    assert_eq!(waits, [Some(0), Some(0), None, Some(0)]);
    let remaining = [0, 2, 3].map(|ask| decided.asks[ask].rules[0].remaining);
    assert_eq!((remaining, decided.bans[1][0].left), ([9, 9, 9], BAN.period));
    assert_eq!(decided.bans[2][0].retry, Some(Retry::After(BAN.period)));
    // It ends, and what is left of it in Redis does, too.
    let later = server.decide(&trip_of(Some(now + BAN.period), vec![ask(1)])).asks;
    assert_eq!((later[0].wait, later[0].rules[0].remaining), (Some(0), 8));
}

/// What it says of that is understood, however long a ban it is.
#[test]
fn an_operator_bans_for_any_time_and_lifts_it() {
    let server = Server::start();
    let now = 1_700_000_000 * SECOND;
    let say = |sets, now| {
        let refusals = Refusals { sets, ..count(&BAN, 1, 0) };
        server.decide(&trip_about(Some(now), refusals)).bans[0][0].left
    };
    for length in [1, SECOND, BAN.max, 0] {
        assert_eq!(say(Some(length), now), length);
        assert_eq!(say(None, now), length, "it is still so");
    }
    assert_eq!(say(Some(BAN.max), now), BAN.max);
    assert_eq!(say(None, now + BAN.max), 0);
}

#[test]
fn what_is_not_ours_bans_nobody() {
    let server = Server::start();
    let now = 1_700_000_000 * SECOND;
    server.decide(&trip_about(Some(now), count(&BAN, 1, 3)));
    let key = server.callers().remove(0);
    for value in ["", "x", "0123456789"] {
        server.command(&["SET", &key, value]);
        let decided = server.decide(&trip_about(Some(now), count(&BAN, 1, 0)));
        assert_eq!((decided.corrupt, decided.asks[0].wait), (1, Some(0)), "{value}");
    }
}

#[test]
fn gateways_ban_together() {
    let server = Server::start();
    let mut gateways = [Gateway::new(&server), Gateway::new(&server)];
    // One permit a day for both of them; refusals on either side count.
    assert!(gateways[0].sends(&server).is_none());
    let mut refused = 0;
    while refused < 3 {
        let refusal = gateways[refused % 2].sends(&server).expect("refused");
        assert!(refusal.starts_with("refused rule=r scope=global"), "{refusal}");
        refused += 1;
    }
    // What they counted goes to Redis with their timers.
    gateways.iter_mut().for_each(|gateway| gateway.tick(&server));
    for gateway in &mut gateways {
        gateway.pass(SECOND);
        // Who has not counted the last refusal looks, now that the caller comes again.
        assert!(gateway.sends(&server).is_some());
        gateway.tick(&server);
        let refusal = gateway.sends(&server).expect("banned");
        assert!(refusal.starts_with("banned rule=r scope=global"), "{refusal}");
    }
    // It is known here by now, and Redis is not asked.
    let trips = gateways.each_ref().map(|gateway| gateway.trips);
    for gateway in &mut gateways {
        gateway.pass(SECOND);
        assert!(gateway.sends(&server).expect("banned").starts_with("banned "));
    }
    assert_eq!(gateways.each_ref().map(|gateway| gateway.trips), trips);
    let bans: u64 = gateways.iter_mut().map(|gateway| gateway.bans(&server)).sum();
    assert_eq!(bans, 1);
}

#[test]
fn a_gateway_that_is_cut_off_bans_by_itself_and_keeps_the_bans_it_knows() {
    let server = Server::start();
    let mut gateway = Gateway::new(&server);
    gateway.cut_off(&server);
    assert!(gateway.sends(&server).is_none());
    for _ in 0..3 {
        assert!(gateway.sends(&server).expect("refused").starts_with("refused "));
    }
    assert!(gateway.sends(&server).expect("banned").starts_with("banned rule=r scope=gateway"));
    // What Redis said before still holds, and is known to nobody else.
    let mut other = Gateway::new(&server);
    assert!(other.sends(&server).is_none());
    while !other.sends(&server).expect("refused").starts_with("banned ") {
        other.tick(&server);
    }
    other.cut_off(&server);
    assert!(other.sends(&server).expect("banned").starts_with("banned "));
}

#[test]
fn a_caller_under_leases_is_banned_within_a_second() {
    let server = Server::start();
    let mut gateway = Gateway::with(&server, "unit: hour, rpu: 1000000000, algo: W");
    let (mut asked, mut admitted) = (0, 0);
    let mut send = |gateway: &mut Gateway, requests| {
        for _ in 0..requests {
            let before = gateway.trips;
            if let Some(refusal) = gateway.sends(&server) {
                assert!(refusal.starts_with("banned "), "{refusal}");
                return false;
            }
            asked += usize::from(gateway.trips > before);
            admitted += 1;
        }
        true
    };
    assert!(send(&mut gateway, 500));
    // Somebody else has it banned.
    let (fingerprint, caller) = (gateway.ban_fingerprint(), gateway.caller());
    let count = Refusals { fingerprint, caller, ..count(&BAN, 0, BAN.after) };
    server.decide(&Trip { gateway: 9, ..trip_about(None, count) });
    assert!(!send(&mut gateway, 1_500), "a millisecond apart");
    assert!(asked < admitted / 10, "{asked} of {admitted} asked Redis");
}

/// Nobody is banned for what others have under way.
#[test]
fn a_refusal_that_ends_with_others_requests_bans_nobody() {
    let server = Server::start();
    let mut gateway = Gateway::with(&server, "unit: day, rpu: 2, algo: W, count: {status: [401]}");
    let open: Vec<_> = (0..2).map(|_| gateway.opens(&server)).collect();
    assert!(open.iter().all(|(_, refused)| refused.is_none()));
    for _ in 0..10 {
        let refused = gateway.sends(&server).expect("they are under way");
        assert!(refused.starts_with("refused"), "{refused}");
    }
    assert_eq!(gateway.bans(&server), 0);
}
