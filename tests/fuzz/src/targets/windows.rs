//! The window of hot keys in shared data: with any value, a hot key is found, and one that is no
//! longer hot ends.

use std::rc::Rc;

use diana_policy::Hot;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use diana_store::hot::spotter::{Spotter, Storage};
use fastrand::Rng;
use kit::fake::FakeSharedData;

use crate::damage::damage_words;

const PER: u64 = 10 * SECOND;
const PACE: u64 = SECOND / 10;
const OVER: u64 = 50;

pub fn run(input: &[u8]) {
    fastrand::feed(input);
    let mut rng = Rng::with_seed(0);
    let data: Rc<FakeSharedData> = Rc::default();
    let hot = Hot { over: OVER, per: PER, header: None, top: 3, reveal: rng.bool() };
    let spotter = || Spotter::new(hot.clone(), Storage::Gateway(data.clone(), "hot".into()), None);
    let mut workers = [spotter(), spotter()];
    let mut now = rng.u64(0..1 << 40);
    for _ in 0..rng.usize(0..40) {
        now += PACE * rng.u64(1..4);
        let worker = &mut workers[rng.usize(0..2)];
        let key = rng.u64(1..6);
        (0..rng.u8(0..100)).for_each(|_| _ = worker.count(whole(key)));
        worker.maintain(now);
        if let Some(list) = worker.list.take() {
            assert!(list.len() < 1000, "{list}");
        }
        if rng.u8(0..3) == 0 {
            damage(&data, &mut rng);
        }
    }
    damage(&data, &mut rng);
    // A key that is hot in one worker alone.
    (0..=OVER).for_each(|_| _ = workers[0].count(whole(77)));
    now += PACE;
    workers.iter_mut().for_each(|worker| _ = worker.maintain(now));
    assert!(workers[0].is_hot(77), "a hot key is not found");
    let (bytes, _) = data.get("hot").expect("a window");
    assert!(bytes.len() as u64 <= Spotter::memory(false).shared, "{} bytes", bytes.len());
    let ends = now + 2 * PER;
    while workers.iter_mut().fold(false, |more, worker| worker.maintain(now) | more) {
        assert!(now < ends, "a key stays hot for ever");
        now += PACE;
    }
    assert!(workers.iter().all(Spotter::is_calm));
}

fn whole(hash: u64) -> Key {
    Key { hash, second_hash: !hash }
}

fn damage(data: &FakeSharedData, rng: &mut Rng) {
    let mut bytes = data.get("hot").map_or(vec![0; 144], |(bytes, _)| bytes);
    let kind = rng.u8(0..6);
    damage_words(&mut bytes, kind, 200, rng);
    data.set("hot", &bytes);
}
