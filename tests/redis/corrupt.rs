//! Values under our keys that the script did not write.

use diana_algorithm::IN_FLIGHT;
use diana_policy::Quota;
use diana_policy::time::Unit;
use diana_redis::protocol::Charge;
use fastrand::Rng;
use kit::rules::counted_in_redis;

use kit::laws::case::Case;
use kit::rules::{Rule, pipeline, today};
use kit::seed;
use kit::server::{Server, spell};

/// Writes bytes under a key.
fn set(server: &Server, key: &str, bytes: &[u8]) {
    let mut out = Vec::new();
    diana_redis::protocol::resp::command(&mut out, 3);
    [b"SET", key.as_bytes(), bytes]
        .iter()
        .for_each(|word| diana_redis::protocol::resp::word(&mut out, word));
    out.extend(spell(&["QUIT"]));
    assert!(server.exchange(&out).starts_with(b"+OK"));
}

/// An array in the script's encoding, with numbers that it may never write.
fn packed(rng: &mut Rng, size: usize) -> Vec<u8> {
    let mut bytes = vec![0xdc, 0, u8::try_from(size).unwrap()];
    for _ in 0..size {
        match rng.u8(0..10) {
            0 => bytes.push(0xc0),
            1 => {
                bytes.push(0xcb);
                bytes.extend(rng.u64(..).to_be_bytes());
            }
            2 => bytes.extend([0xa1, b'7']),
            3 => {
                bytes.push(0xd3);
                bytes.extend((-1_i64 << rng.u8(0..63)).to_be_bytes());
            }
            _ => {
                bytes.push(0xcf);
                bytes.extend((rng.u64(0..1 << 53) >> rng.u8(0..53)).to_be_bytes());
            }
        }
    }
    bytes
}

#[test]
fn corrupt_bytes_count_as_empty_and_are_replaced() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let (mut corrupt, mut believed) = (0, 0);
    for number in 0..1200 {
        let rule = Rule::random(counted_in_redis(number), &mut rng);
        let charge = rule.charge(1, rule.case.quota.cost, 100);
        server.command(&["FLUSHALL"]);
        let now = Some(today(&mut rng));
        let fresh = server.decide(&pipeline(now, vec![charge.clone()]));
        let Some(key) = server.callers().pop() else { continue };
        match rng.u8(0..8) {
            0 => drop(server.command(&["DEL", &key])),
            1 => {
                server.command(&["DEL", &key]);
                server.command(&["LPUSH", &key, "1"]);
            }
            2 => {
                let bytes: Vec<u8> = (0..rng.usize(0..40)).map(|_| rng.u8(..)).collect();
                set(&server, &key, &bytes);
            }
            3 => set(&server, &key, &b"\x81".repeat(rng.usize(1..2000))),
            _ => {
                let size =
                    [8, 9, 8 + rule.case.quota.slices.unwrap_or(9) as usize][rng.usize(0..3)];
                set(&server, &key, &packed(&mut rng, size));
            }
        }
        let again = server.decide(&pipeline(now, vec![charge]));
        if again.corrupt == 1 {
            assert_eq!(again.asks, fresh.asks, "it did not count as empty");
            assert_eq!(server.command(&["TYPE", &key]), "string");
            corrupt += 1;
        } else {
            believed += 1;
        }
    }
    println!("{corrupt} were corrupt, {believed} could not be told from ours");
    assert!(corrupt > 300 && believed > 50);
}

#[test]
fn impossible_numbers_are_corrupt() {
    let server = Server::start();
    let now = Some(1_700_000_000_000_000);
    let float = |number: f64| [&[0xcb][..], &number.to_be_bytes()].concat();
    let strange = [
        vec![0xff],
        float(0.5),
        float((1_u64 << 53) as f64),
        float(f64::NAN),
        float(f64::INFINITY),
        b"\xa17".to_vec(),
        vec![0xc0],
        vec![0x90],
    ];
    for (short, size) in [("W", 9), ("SW", 17), ("TB", 8), ("LB", 8)] {
        let charge = Rule::new(short, Quota::new(Unit::Second, 10)).charge(1, 1, 1);
        let pipeline = pipeline(now, vec![charge]);
        let fresh = server.decide(&pipeline);
        let key = server.callers().pop().unwrap();
        let check = |bytes: &[u8], corrupt| {
            set(&server, &key, bytes);
            let decided = server.decide(&pipeline);
            assert_eq!(
                (decided.corrupt, &decided.asks),
                (corrupt, &fresh.asks),
                "{short} {bytes:x?}"
            );
        };
        let zeros = |size: usize| [&[0xdc, 0, size as u8][..], &vec![0; size]].concat();
        check(&zeros(size), 0);
        check(&zeros(size - 1), 1);
        check(&zeros(size + 1), 1);
        check(&zeros(size)[..size], 1);
        for place in 3..3 + size {
            for number in &strange {
                let mut bytes = zeros(size);
                bytes.splice(place..=place, number.iter().copied());
                check(&bytes, 1);
            }
        }
        server.command(&["FLUSHALL"]);
    }
}

/// In-flight slots have a value of any length.
#[test]
fn corrupt_slots_count_as_empty_and_are_replaced() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let quota = Quota::new(Unit::Second, 10);
    let algorithm = (IN_FLIGHT.build)(&quota).unwrap();
    let mut rule = Rule::of(IN_FLIGHT, Case { quota, algorithm }).unwrap();
    rule.numbers = rule.numbers.held_by(7);
    let now = Some(today(&mut rng));
    let (mut corrupt, mut believed) = (0, 0);
    let pipeline = pipeline(now, vec![rule.charge(1, 1, 0)]);
    for _ in 0..600 {
        server.command(&["FLUSHALL"]);
        let fresh = server.decide(&pipeline);
        assert_eq!((fresh.corrupt, fresh.asks[0].rules[0].remaining), (0, 9));
        let key = server.callers().pop().unwrap();
        match rng.u8(0..4) {
            0 => {
                server.command(&["DEL", &key]);
                server.command(&["LPUSH", &key, "1"]);
            }
            1 => {
                let bytes: Vec<u8> = (0..rng.usize(0..40)).map(|_| rng.u8(..)).collect();
                set(&server, &key, &bytes);
            }
            _ => {
                let size = rng.usize(0..9);
                set(&server, &key, &packed(&mut rng, size));
            }
        }
        let again = server.decide(&pipeline);
        if again.corrupt > 0 {
            assert_eq!(again.asks, fresh.asks);
            corrupt += 1;
        } else {
            believed += 1;
        }
        assert_eq!(server.decide(&pipeline).corrupt, 0, "it was replaced");
    }
    println!("{corrupt} were corrupt, {believed} could not be told from ours");
    assert!(corrupt > 200);
}

#[test]
fn implausible_clock_is_replaced() {
    let server = Server::start();
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let bytes = |latest: u64, ahead: u64| {
        [&[0x92, 0xcf][..], &latest.to_be_bytes(), &[0xcf], &ahead.to_be_bytes()].concat()
    };
    // The last one is current only until it is added to Redis's time.
    let ages =
        [((1 << 53) - 1, 0), (0, (1 << 53) - 1), (1 << 51, 1 << 51), (0, (1 << 52) - (1 << 50))];
    for (latest, ahead) in ages {
        server.command(&["FLUSHALL"]);
        set(&server, "diana:{2:test}:clock", &bytes(latest, ahead));
        let ask = || server.decide(&pipeline(None, vec![rule.charge(1, 1, 0)]));
        let decided = [ask(), ask()].map(|it| (it.corrupt, it.asks[0].rules[0].remaining));
        assert_eq!(decided, [(1, 9), (0, 8)], "{latest} and {ahead} are believed");
    }
}

#[test]
fn corrupt_seed_clock_or_register_is_replaced() {
    let server = Server::start();
    for damage in [
        ["LPUSH", "diana:{2:test}:seed", "x"],
        ["SET", "diana:{2:test}:seed", "x"],
        ["SET", "diana:{2:test}:seed", "0000000000000001000000000000000G"],
        ["SET", "diana:{2:test}:clock", "x"],
        ["SADD", "diana:{2:test}:clock", "x"],
        ["SET", "diana:{2:test}:gateways", "x"],
        ["SADD", "diana:{2:test}:gateways", "x"],
    ] {
        server.command(&["FLUSHALL"]);
        server.command(&damage);
        let decided = server.decide(&pipeline(None, vec![]));
        assert_eq!(decided.gateways, 1, "{damage:?}");
        let seed = server.command(&["GET", "diana:{2:test}:seed"]);
        assert_eq!(seed, "00000000000000010000000000000002", "{damage:?}");
    }
}

#[test]
fn corrupt_counts_and_shared_buckets_are_replaced() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let (mut corrupt, mut shared) = (0, 0);
    for number in 0..600 {
        let rule = Rule::random(counted_in_redis(number), &mut rng);
        let cost = rule.case.quota.cost;
        let ask = |caller| Charge { keys: 2, ..rule.charge(caller, cost, 100) };
        server.command(&["FLUSHALL"]);
        let now = today(&mut rng);
        server.decide(&pipeline(Some(now), (0..6).map(ask).collect()));
        let keys = [server.keys("diana:*:n"), server.keys("diana:*:o*")].concat();
        for key in keys {
            let size = [9, 12, 8, 18][rng.usize(0..4)];
            match rng.u8(0..6) {
                0 => drop(server.command(&["DEL", &key])),
                1 => set(&server, &key, &b"\x81".repeat(rng.usize(1..99))),
                2 => {
                    server.command(&["DEL", &key]);
                    server.command(&["LPUSH", &key, "1"]);
                }
                _ => set(&server, &key, &packed(&mut rng, size)),
            }
        }
        for after in [0, 1, 1_000_000] {
            let decided = server.decide(&pipeline(Some(now + after), (0..9).map(ask).collect()));
            corrupt += decided.corrupt;
            shared += decided.asks.iter().filter(|ask| ask.rules[0].overflow).count();
        }
    }
    println!("{corrupt} were corrupt; {shared} asks were decided by a shared bucket");
    assert!(corrupt > 300 && shared > 1000);
}
