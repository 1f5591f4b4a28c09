//! Several stores behind one address.

use std::rc::Rc;

use diana_policy::key::Seed;
use diana_policy::time::SECOND;
use diana_redis::shard::Shards;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;
use kit::model::wire::{Asking, commands};
use kit::seed;

use super::{MILLISECOND, OWN, Worker, at, ok, status};

/// Workers of one gateway.
struct Gateway {
    workers: Vec<Worker>,
    /// The number of connections that its workers have opened.
    calls: usize,
}

impl Gateway {
    fn new(workers: usize, own: Seed) -> Gateway {
        let data = Rc::new(FakeSharedData::default());
        let worker = |_| {
            let mut worker = Worker::with_secret(&data, Shards::ONE, own);
            worker.outbox.beats = true;
            worker
        };
        Gateway { workers: (0..workers).map(worker).collect(), calls: 0 }
    }

    /// A worker with a request, or without one, calls until it has no more calls to make. `store`
    /// chooses a store by the number of the call; `None` is a lost call.
    fn work(
        &mut self,
        worker: usize,
        asks: bool,
        now: u64,
        stores: &mut [Redis],
        mut store: impl FnMut(usize) -> Option<usize>,
    ) {
        let worker = &mut self.workers[worker];
        if asks {
            worker.ask(1, now);
        }
        worker.work(now);
        // Redis with another secret may reply that again and again.
        for _ in 0..20 {
            for (token, call) in worker.calls.fresh() {
                self.calls += 1;
                let reply = match store(self.calls) {
                    Some(store) => ok(stores[store].answer(&call.body, at(now).wall)),
                    None => status(503),
                };
                worker.answer(token, &reply, now).unwrap();
            }
        }
    }

    /// The number of replies of former stores.
    fn split(&self) -> u64 {
        self.workers.iter().map(|worker| worker.client.counts.split).sum()
    }

    /// The number of lines about several stores.
    fn lines(&self) -> usize {
        let lines = self.workers.iter().flat_map(|worker| &worker.client.log_lines);
        lines.filter(|line| line.contains("reach several stores")).count()
    }
}

/// Connections go to two or three stores in turn, or at random, with and without requests.
#[test]
fn several_stores_are_counted_and_logged_once() {
    for (workers, stores) in [(1, 2), (1, 3), (2, 2), (4, 2), (4, 3)] {
        for every in [SECOND, 300 * MILLISECOND, 7 * MILLISECOND] {
            for asks in [true, false] {
                for is_random in [true, false] {
                    let case = format!("{workers} {stores} {every} {asks} {is_random}");
                    let mut rng = Rng::with_seed(seed::next());
                    let mut gateway = Gateway::new(workers, OWN);
                    let mut redis: Vec<Redis> = (0..stores).map(|_| Redis::default()).collect();
                    let mut now = SECOND;
                    // A store without the script would decide nothing.
                    for store in 0..stores {
                        gateway.work(0, true, now, &mut redis, |_| Some(store));
                    }
                    while now < 30 * SECOND {
                        let worker = rng.usize(..workers);
                        gateway.work(worker, asks, now, &mut redis, |call| {
                            Some(if is_random { rng.usize(..stores) } else { call % stores })
                        });
                        now += every;
                    }
                    assert!(gateway.split() >= 3, "{case}: {}", gateway.split());
                    assert_eq!(gateway.lines(), 1, "{case}");
                }
            }
        }
    }
}

/// Each store has the secret of another gateway, so that calls are repeated with another one.
#[test]
fn stores_with_different_secrets_are_found() {
    let mut stores = [Redis::default(), Redis::default()];
    let seeds = [OWN, Seed { k0: 7, k1: 8 }];
    let mut fleet = seeds.map(|own| Gateway::new(2, own));
    let mut rng = Rng::with_seed(seed::next());
    for (number, gateway) in fleet.iter_mut().enumerate() {
        gateway.work(0, true, SECOND, &mut stores, |_| Some(number));
    }
    for step in 0..300 {
        let now = 2 * SECOND + step * 100 * MILLISECOND;
        for gateway in &mut fleet {
            let worker = rng.usize(..2);
            gateway.work(worker, true, now, &mut stores, |_| Some(rng.usize(..2)));
        }
    }
    for gateway in &fleet {
        assert!(gateway.split() > 0);
        assert_eq!(gateway.lines(), 1);
    }
}

/// Stores that take turns for a minute each are several, too.
#[test]
fn slow_turns_are_found() {
    let mut stores = [Redis::default(), Redis::default()];
    let mut gateway = Gateway::new(2, OWN);
    for step in 0..1200 {
        let now = SECOND + step * 100 * MILLISECOND;
        let turn = (step as usize / 300) % 2;
        gateway.work(step as usize % 2, true, now, &mut stores, |_| Some(turn));
        assert_eq!(gateway.split(), (step / 300).saturating_sub(1).min(2), "{step}");
    }
}

/// Any series of failovers that lose the last writes or all of them, and of lost calls: the gateway
/// never returns to a former store.
#[test]
fn failover_is_no_split() {
    for seed in (0..50).map(|number| seed::next().wrapping_add(number)) {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let workers = rng.usize(1..4);
        let mut gateway = Gateway::new(workers, OWN);
        let mut stores = [Redis::default()];
        // All calls that the current store has had, and how many it had when it took over.
        let (mut log, mut inherited): (Vec<(Vec<u8>, u64)>, usize) = (Vec::new(), 0);
        let mut now = SECOND;
        for _ in 0..300 {
            now += rng.u64(1..SECOND);
            if rng.u8(..40) == 0 {
                // A replica has at least one of the numbered calls since the previous failover.
                let has_ordinal = |(body, _): &(Vec<u8>, u64)| {
                    let words = commands(body);
                    words.iter().any(|it| it.len() > 2 && Asking::read(it).ordinal.is_some())
                };
                let first = log.iter().skip(inherited).position(has_ordinal);
                let least = first.map_or(log.len(), |first| inherited + first + 1);
                let kept = (log.len() - rng.usize(..=4).min(log.len())).max(least);
                log.truncate(if rng.bool() { kept } else { 0 });
                inherited = log.len();
                stores = [Redis::default()];
                for (body, wall) in &log {
                    stores[0].answer(body, *wall);
                }
            }
            let loss = rng.u8(..3);
            let worker = rng.usize(..workers);
            let before = gateway.workers[worker].calls.fake.sent.borrow().len();
            let mut lost = Vec::new();
            gateway.work(worker, rng.bool(), now, &mut stores, |_| {
                let is_lost = loss == 0 && rng.u8(..4) == 0;
                lost.push(is_lost);
                (!is_lost).then_some(0)
            });
            let sent = gateway.workers[worker].calls.fake.sent.borrow();
            let taken = sent[before..].iter().zip(lost).filter(|(_, is_lost)| !is_lost);
            log.extend(taken.map(|(call, _)| (call.body.clone(), at(now).wall)));
        }
        assert_eq!((gateway.split(), gateway.lines()), (0, 0));
    }
}

/// After a minute with a single store, several are logged again.
#[test]
fn several_stores_are_logged_again_later() {
    let mut stores = [Redis::default(), Redis::default()];
    let mut gateway = Gateway::new(1, OWN);
    for store in 0..2 {
        gateway.work(0, true, 0, &mut stores, |_| Some(store));
    }
    let mut lines = Vec::new();
    for second in 1..=240 {
        let is_split = second % 100 < 30;
        gateway.work(0, true, second * SECOND, &mut stores, |call| {
            Some(if is_split { call % 2 } else { 0 })
        });
        lines.push(gateway.lines());
    }
    assert_eq!([lines[28], lines[98], lines[135], lines[239]], [1, 1, 2, 3]);
}

/// Another address leads to another store.
#[test]
fn configuration_with_another_redis_is_no_split() {
    let data = Rc::new(FakeSharedData::default());
    let mut stores = [Redis::default(), Redis::default()];
    let mut clients = [Worker::at(&data, "redis"), Worker::at(&data, "other")];
    for second in 1..60 {
        for (worker, store) in clients.iter_mut().zip(&mut stores) {
            worker.ask(1, second * SECOND);
            worker.work(second * SECOND);
            for _ in 0..5 {
                for (token, call) in worker.calls.fresh() {
                    let body = store.answer(&call.body, at(second * SECOND).wall);
                    worker.answer(token, &ok(body), second * SECOND).unwrap();
                }
            }
            assert_eq!(worker.client.counts.split, 0, "{second}");
        }
    }
}
