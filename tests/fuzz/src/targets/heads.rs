//! The record of Redis's state in shared data: with any value, the gateway returns to an available
//! Redis, and no request waits forever.

use std::rc::Rc;

use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use fastrand::Rng;
use kit::fake::FakeSharedData;

use crate::worker::{FLEET, MILLISECOND, Response, START, Worker};
use kit::model::redis::Redis;

const RECORD: &str = "diana/1/test/fleet";

pub fn run(input: &[u8]) {
    fastrand::feed(input);
    let mut rng = Rng::with_seed(0);
    let data = Rc::new(FakeSharedData::default());
    let early = rng.bool();
    if early {
        damage(&data, &mut rng);
    }
    let (mut worker, mut redis) = (Worker::new(&data, ""), Redis::default());
    let mut now = START + rng.u64(0..1 << 40);
    now -= now % MILLISECOND;
    let began = now;
    let damaged_at = began + rng.u64(0..300) * MILLISECOND;
    while now < began + 5 * SECOND {
        now += MILLISECOND;
        if now == damaged_at && !early {
            damage(&data, &mut rng);
        }
        if now % (10 * MILLISECOND) == 0 {
            worker.request(rng.u8(0..2), now);
        }
        worker.step(now, &mut |call| {
            Some(Response {
                status: Some(200),
                body: redis.answer(&call.body, 1_700_000_000 * SECOND + now),
            })
        });
    }
    assert!(worker.instance.unavailable_shards() == 0, "the gateway stays alone");
    // Redis counted under the secret in shared data, or the gateway in degraded mode: each of them
    // once.
    assert!(worker.admitted.values().all(|count| *count <= 2 * FLEET), "{:?}", worker.admitted);
}

fn damage(data: &FakeSharedData, rng: &mut Rng) {
    let mut bytes = data.get(RECORD).map_or(vec![0; 64], |(bytes, _)| bytes);
    match rng.u8(0..4) {
        0 => bytes = rng.rest(100),
        1 => bytes.truncate(rng.usize(0..=64)),
        _ => {
            for word in bytes.chunks_mut(8) {
                if rng.bool() {
                    let value = rng.u64(..) >> rng.u8(0..64);
                    word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
                }
            }
        }
    }
    data.set(RECORD, &bytes);
}
