//! Requests of which only some count, in Redis: reservations are distinct from usage.

use diana_policy::port::Clock;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::model::redis::Redis;
use kit::seed;

use super::{Worker, request};

const LIMIT: usize = 5;

impl Worker {
    /// Advances the clock while Redis replies to everything.
    fn settles(&mut self, redis: &mut Redis) {
        self.steps(60, &mut |call, time| Some(redis.answer(&call.body, time)));
    }

    /// The earliest admitted request ends.
    fn first_ends(&mut self, status: u16) {
        let (now, ending) = (self.clock.now(), FakeEnding::answered(status));
        let mut permit = self.permits.remove(0);
        self.limiter.on_response(&mut permit, &ending);
        self.limiter.finish(permit, &ending, now);
    }
}

fn worker(algo: &str) -> Worker {
    Worker::new(&format!(
        "actor: account, unit: day, rpu: {LIMIT}, algo: {algo}, scope: global, count: {{status: [401]}}"
    ))
}

/// Checked by an oracle that remembers open and counted requests.
#[test]
fn counting_in_redis_agrees_with_the_oracle() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut soon, mut long) = (0, 0);
    for round in 0..30 {
        let (mut worker, mut redis) = (worker(["W", "SW"][round % 2]), Redis::default());
        let mut counted = 0;
        for _ in 0..80 {
            if rng.bool() && !worker.permits.is_empty() {
                let wrong = rng.u8(..6) == 0;
                counted += usize::from(wrong);
                worker.first_ends(if wrong { 401 } else { 200 });
                worker.settles(&mut redis);
                continue;
            }
            let (open, decided) = (worker.permits.len(), worker.verdicts.len());
            worker.request(&request());
            worker.settles(&mut redis);
            assert_eq!(worker.verdicts.len(), decided + 1);
            assert_eq!(worker.verdicts[decided], open + counted < LIMIT, "{open} and {counted}");
            if worker.verdicts[decided] {
                continue;
            }
            let (_, after) =
                worker.refused.iter().find(|(name, _)| *name == "retry-after").expect("a time");
            assert_eq!(after == "1", counted < LIMIT, "{after}");
            if counted < LIMIT { soon += 1 } else { long += 1 }
        }
    }
    assert!(soon > 100 && long > 100, "too tame: {soon}, {long}");
}
