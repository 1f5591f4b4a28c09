//! The instant of a decision in Redis is estimated, for any delay of its reply.

use diana_policy::time::SECOND;
use diana_store::replies::QuestionResult;
use fastrand::Rng;

use super::{Worker, ok, requests};
use crate::support::redis::decides_at;
use kit::seed;

/// The shortest delay of a call, and of its reply.
const QUICKEST: u64 = 200;

/// Redis's clock is ahead of the gateway's by this.
const AHEAD: u64 = 5_000 * SECOND;

/// Asks at `now`, with a Redis clock that is `ahead`, and delays of the call and the reply. Returns
/// the instant of the decision, and the gateway's estimate of it.
fn ask(worker: &mut Worker, now: u64, ahead: u64, there: u64, back: u64) -> (u64, u64) {
    worker.ask(1, now);
    worker.work(now);
    let (token, _) = worker.calls.one();
    let decided = now + there;
    let one = [0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0];
    let results = worker.answer(token, &ok(decides_at(decided + ahead, &one)), decided + back);
    match requests(results.unwrap()).as_slice() {
        [(_, QuestionResult::Decided { at, .. })] => (decided, *at),
        other => panic!("{other:?}"),
    }
}

fn latency(rng: &mut Rng) -> u64 {
    QUICKEST + if rng.u8(0..4) == 0 { rng.u64(0..9_000) } else { rng.u64(0..300) }
}

#[test]
fn instant_does_not_depend_on_the_reply_time() {
    let mut rng = Rng::with_seed(seed::next());
    let mut worker = Worker::of(&Default::default());
    let (mut now, mut least) = (SECOND, u64::MAX);
    for number in 0..2_000 {
        now += rng.u64(20_000..60_000);
        let (there, back) = (latency(&mut rng), latency(&mut rng));
        let (decided, at) = ask(&mut worker, now, AHEAD, there, back);
        least = least.min(back);
        assert!((decided..=decided + back).contains(&at), "{at}, decided at {decided}");
        // From the second span on, there was a fast reply.
        if number > 200 {
            assert!(at - decided <= 2 * QUICKEST, "{} too late", at - decided);
        }
    }
}

#[test]
fn changed_clock_of_redis_is_used_at_once() {
    for to in [AHEAD - 3 * SECOND, AHEAD + 3 * SECOND] {
        let mut worker = Worker::of(&Default::default());
        for number in 1..50 {
            ask(&mut worker, number * 40_000, AHEAD, QUICKEST, QUICKEST);
        }
        for number in 50..60 {
            let (decided, at) = ask(&mut worker, number * 40_000, to, 900, 1_500);
            assert!((decided..=decided + 1_500).contains(&at), "{at}, decided at {decided}");
        }
    }
}
