//! Slots in shared data: with any values, a caller gets at most one additional limit and the
//! workers' leases, and the next window is ordinary.

use diana_policy::port::SharedData;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{MAX_DRAINED, MAX_PERMITS, Quota};
use fastrand::Rng;

use crate::damage::damage_words;
use kit::store::gateway::Gateway;
use kit::store::rule::Rule;

pub fn run(input: &[u8]) {
    fastrand::feed(input);
    let mut rng = Rng::with_seed(0);
    let short = ["W", "SW", "TB"][rng.usize(0..3)];
    let rpu = match rng.u64(1..60) {
        59 if short == "TB" => MAX_DRAINED,
        59 => MAX_PERMITS,
        few => few,
    };
    let is_wide = rpu > MAX_DRAINED;
    let rule = Rule::new(short, Quota { is_wide, ..Quota::new(Unit::Second, rpu) });
    let gateway = Gateway::new(rule, rng.usize(1..20), 2);
    let callers = rng.u64(1..30);
    for _ in 0..rng.usize(0..100) {
        gateway.wait(rng.u64(0..SECOND / 50));
        gateway.request(rng.usize(0..2), rng.u64(0..callers));
    }
    let mut believable = false;
    for _ in 0..rng.usize(0..4) {
        believable |= damage(&gateway, &mut rng);
    }
    let caller = rng.u64(0..callers);
    let flood = |worker| {
        let admits = |_: &u64| gateway.request(worker, caller).is_some_and(|got| got.is_admitted());
        (0..1000).take_while(admits).count() as u64
    };
    let given = flood(0) + flood(1);
    assert!(given <= 2 * rpu, "{short} {rpu}: {given} at once");
    gateway.wait(4 * SECOND);
    let given = flood(0) + flood(1);
    assert!(given <= rpu, "{short} {rpu}: {given} at once later");
    assert!(given > 0 || believable, "{short} {rpu}: refused for ever");
}

/// Damages a value. Returns true if it may now contain a caller's usage of years.
fn damage(gateway: &Gateway, rng: &mut Rng) -> bool {
    let keys = gateway.data.keys();
    let Some(name) = rng.choice(&keys) else { return false };
    let Some((mut bytes, _)) = gateway.data.get(name) else { return false };
    let kind = rng.u8(0..6);
    match kind {
        2 => bytes.iter_mut().skip(8).for_each(|byte| *byte = rng.u8(..)),
        _ => damage_words(&mut bytes, kind, 60, rng),
    }
    gateway.data.set(name, &bytes);
    kind != 1
}
