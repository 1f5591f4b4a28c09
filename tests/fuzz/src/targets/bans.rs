//! Bans in shared data: with any values, no caller is banned for longer than a ban can last, and
//! after its end bans begin as usual.

use std::rc::Rc;

use diana_policy::Scope;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use diana_store::bans::Bans;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use fastrand::Rng;
use kit::bans::{BAN, Calls};
use kit::fake::FakeSharedData;

use crate::damage::damage_words;

fn open(data: &Rc<FakeSharedData>) -> Bans {
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    Bans::new(BAN, Scope::Gateway, 1, 20, None, &mut stores)
}

fn key(caller: u64) -> Key {
    Key { hash: caller.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, second_hash: caller }
}

pub fn run(input: &[u8]) {
    fastrand::feed(input);
    let mut rng = Rng::with_seed(0);
    let data: Rc<FakeSharedData> = Rc::default();
    let mut workers = [open(&data), open(&data)];
    let mut now = rng.u64(0..1 << 40);
    for _ in 0..rng.usize(0..60) {
        now += rng.u64(0..SECOND);
        let (worker, caller) = (&mut workers[rng.usize(0..2)], key(rng.u64(0..4)));
        if worker.left(caller, now) == 0 {
            (0..rng.u8(0..12)).for_each(|_| worker.refused(caller, now));
        }
        if rng.bool() {
            worker.maintain_at(now);
        }
        if rng.u8(0..4) == 0 {
            damage(&data, &mut rng);
        }
        for caller in 0..4 {
            let left = workers[rng.usize(0..2)].left(key(caller), now);
            assert!(left <= 2 * BAN.max, "banned for {left} ticks");
        }
    }
    workers.iter_mut().for_each(|worker| _ = worker.maintain_at(now));
    assert!(data.keys().iter().all(|key| key.len() < 80), "{:?}", data.keys());
    // Until now a worker ignored an end later than that of any ban. When it is near enough, it
    // looks like the end of a real ban, and the caller is banned until then.
    now += 3 * BAN.max;
    for caller in (0..4).rev() {
        let left = workers[0].left(key(caller), now);
        assert!(left <= 2 * BAN.max, "banned for {left} ticks");
        now += left;
        assert_eq!(workers[0].left(key(caller), now), 0, "a ban without end");
    }
    (0..BAN.after).for_each(|_| workers[0].refused(key(0), now));
    assert!(workers[0].left(key(0), now) > 0, "nobody can be banned any more");
    // The other worker receives it at once. If the count of bans was damaged, at its next refusals.
    for _ in 0..2 {
        now += SECOND / 10;
        if workers[1].left(key(0), now) == 0 {
            (0..BAN.after).for_each(|_| workers[1].refused(key(0), now));
        }
    }
    assert!(workers[1].left(key(0), now) > 0, "the other worker does not know");
}

fn damage(data: &FakeSharedData, rng: &mut Rng) {
    let keys = data.keys();
    let Some(name) = rng.choice(&keys) else { return };
    let Some((mut bytes, _)) = data.get(name) else { return };
    let kind = rng.u8(0..6);
    damage_words(&mut bytes, kind, 60, rng);
    data.set(name, &bytes);
}
