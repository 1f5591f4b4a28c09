//! Values under our keys in Redis that the script did not write: each counts as empty and is
//! replaced, or is valid.

use diana_algorithm::REGISTRY;
use diana_redis::protocol::resp::{command, word};
use fastrand::Rng;
use kit::rules::counted_in_redis;

use kit::rules::{Rule, pipeline, today};
use kit::server::{Server, spell};

thread_local! {
    // The parent process ends it together with this process.
    static SERVER: &'static Server = Box::leak(Box::new(Server::start()));
}

pub fn run(input: &[u8]) {
    fastrand::feed(input);
    let mut rng = Rng::with_seed(0);
    SERVER.with(|server| play(server, &mut rng));
}

fn play(server: &Server, rng: &mut Rng) {
    let rule = Rule::random(counted_in_redis(rng.usize(0..REGISTRY.len())), rng);
    let charge = rule.charge(1, rule.case.quota.cost, 100);
    server.command(&["FLUSHALL"]);
    let now = Some(today(rng));
    let fresh = server.decide(&pipeline(now, vec![charge.clone()]));
    let keys = server.keys("diana:*");
    let Some(key) = rng.choice(&keys) else { return };
    let bytes = value(rng);
    let mut out = Vec::new();
    command(&mut out, 3);
    [b"SET", key.as_bytes(), &bytes].iter().for_each(|one| word(&mut out, one));
    out.extend(spell(&["QUIT"]));
    assert!(server.exchange(&out).starts_with(b"+OK"));
    let callers = server.callers();
    let is_caller = callers.contains(key);
    // The count of callers is read for new callers. For others only when their expiry moves to
    // another slice.
    let come_anew = || {
        if key.ends_with(":n") {
            callers.iter().for_each(|caller| drop(server.command(&["DEL", caller])));
        }
    };
    let pipeline = pipeline(now, vec![charge]);
    // For other keys than callers, only a reply is guaranteed.
    if key.ends_with(":seed") {
        server.command(&["DEL", key]);
    }
    come_anew();
    let again = server.decide(&pipeline);
    assert_eq!(again.asks.len(), 1);
    if is_caller && again.corrupt == 1 {
        assert_eq!(again.asks, fresh.asks, "it did not count as empty");
    }
    let (outcome, limit) =
        (&again.asks[0], rule.case.quota.rpu.max(rule.case.quota.burst.unwrap_or(0)));
    assert!(outcome.rules[0].remaining <= limit, "{outcome:?} of {:?}", rule.case.quota);
    come_anew();
    let third = server.decide(&pipeline);
    // A refusal charges nothing, and writes nothing.
    assert!(
        third.corrupt == 0 || outcome.wait.is_none(),
        "{key} was not replaced: {:?}, then {:?}",
        again,
        third
    );
}

/// Raw bytes, or an array of numbers in the script's encoding.
fn value(rng: &mut Rng) -> Vec<u8> {
    if rng.u8(0..3) == 0 {
        return rng.rest(80);
    }
    let size = rng.u8(0..30);
    let mut bytes = vec![0xdc, 0, size];
    for _ in 0..size {
        match rng.u8(0..12) {
            0 => bytes.push(0xc0),
            1 => {
                bytes.push(0xcb);
                bytes.extend(rng.u64(..).to_be_bytes());
            }
            2 => {
                bytes.push(0xd3);
                bytes.extend(rng.i64(..).to_be_bytes());
            }
            _ => {
                bytes.push(0xcf);
                bytes.extend((rng.u64(0..1 << 53) >> rng.u8(0..53)).to_be_bytes());
            }
        }
    }
    bytes
}
