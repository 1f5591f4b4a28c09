//! Every algorithm against a model that remembers all that it admitted.

use std::hash::{BuildHasher, RandomState};

use fastrand::Rng;

use super::{Asked, BEGIN, asked, decisions};

/// What a model says: until when a request waits, in microseconds, or that it is refused.
type Says = Option<u64>;

/// A model: what was admitted before, at which instants, and now.
type Model = fn(&[u64], u64) -> Says;

const SECOND: u64 = 1_000_000;

/// A window of ten seconds, three permits.
fn window(admitted: &[u64], now: u64) -> Says {
    let same = admitted.iter().filter(|at| *at / (10 * SECOND) == now / (10 * SECOND));
    (same.count() < 3).then_some(0)
}

/// The same in slices of a second, of which an interval touches eleven.
fn sliding_window(admitted: &[u64], now: u64) -> Says {
    let near = admitted.iter().filter(|at| now / SECOND - *at / SECOND <= 10);
    (near.count() < 3).then_some(0)
}

/// Two permits a second, five at once. A permit drains in half a second.
fn token_bucket(admitted: &[u64], now: u64) -> Says {
    (debt(admitted, now) + SECOND / 2 <= 5 * SECOND / 2).then_some(0)
}

/// Two a second, each half a second after the one before; nobody waits more than a second.
fn leaky_bucket(admitted: &[u64], now: u64) -> Says {
    let wait = debt(admitted, now);
    (wait <= SECOND).then_some(wait)
}

/// Microseconds until all that was admitted has drained.
fn debt(admitted: &[u64], now: u64) -> u64 {
    let add = |empty: u64, at: &u64| empty.max(*at) + SECOND / 2;
    admitted.iter().fold(0, add).saturating_sub(now)
}

fn compare(rule: &str, model: Model) {
    let seed = std::env::var("DIANA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("DIANA_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let mut at = BEGIN;
    let log: Vec<Asked> = (0..3000)
        .map(|_| {
            at += if rng.u8(0..50) == 0 { rng.u64(0..20_000) } else { rng.u64(0..200) };
            asked(at, "/", rng.u64(1..4))
        })
        .collect();
    let rules = format!("limits: [{{Url: /, rules: [{{name: it, actor: account, {rule}}}]}}]");
    let mut admitted = [const { Vec::new() }; 4];
    let decided = decisions(&rules, &log);
    assert_eq!(decided.len(), log.len());
    let mut refusals = 0;
    for (asked, (time, decision, wait)) in log.iter().zip(decided) {
        assert_eq!(time, asked.at);
        let before = &mut admitted[asked.account as usize];
        let now = asked.at * 1000;
        let expected = match model(before, now) {
            None => ("refused", 0),
            Some(0) => ("admitted", 0),
            Some(wait) => ("held", wait),
        };
        assert_eq!((decision.as_str(), wait), expected, "{asked:?}");
        match expected.0 {
            "refused" => refusals += 1,
            _ => before.push(now),
        }
    }
    assert!((100..2900).contains(&refusals), "{refusals} tell nothing");
}

#[test]
fn windows() {
    compare("unit: 10s, rpu: 3, algo: W, scope: local", window);
    compare("unit: 10s, rpu: 3, algo: W", window);
}

#[test]
fn sliding_windows() {
    compare("unit: 10s, rpu: 3, algo: SW, scope: local", sliding_window);
    compare("unit: 10s, rpu: 3, algo: SW", sliding_window);
}

#[test]
fn token_buckets() {
    compare("unit: second, rpu: 2, burst: 5, algo: TB, scope: local", token_bucket);
    compare("unit: second, rpu: 2, burst: 5, algo: TB", token_bucket);
}

#[test]
fn leaky_buckets() {
    compare("unit: second, rpu: 2, algo: LB, scope: local", leaky_bucket);
    compare("unit: second, rpu: 2, algo: LB", leaky_bucket);
}
