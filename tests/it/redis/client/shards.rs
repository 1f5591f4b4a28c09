//! A Redis with shards.

mod numbers;

use std::rc::Rc;

use diana_policy::key::{Key, Seed};
use diana_policy::time::SECOND;
use diana_redis::shard::{Shard, Shards, Tags};
use diana_store::replies::QuestionResult;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model::proxy::Proxy;

use super::{MILLISECOND, Worker, ok, requests};

const EPOCH: u64 = 1_700_000_000 * SECOND;

/// The cluster slot of a tag, implemented from the text of the cluster specification.
fn slot(tag: &str) -> u32 {
    let mut crc = 0_u32;
    for byte in tag.bytes() {
        crc ^= u32::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 > 0 { crc << 1 ^ 0x1021 } else { crc << 1 } & 0xffff;
        }
    }
    crc % 16_384
}

/// A caller in this shard of sixteen.
fn caller(part: u64) -> u64 {
    part << 60 | 1
}

fn worker() -> Worker {
    Worker::with_shards(&Rc::new(FakeSharedData::default()), Shards::new(16))
}

/// Lets the proxy reply to all calls for `count` milliseconds. Returns the outcomes of requests.
pub(super) fn steps(
    worker: &mut Worker,
    proxy: &mut Proxy,
    from: u64,
    count: u64,
) -> Vec<(u64, QuestionResult)> {
    let mut results = Vec::new();
    for now in (from..).step_by(MILLISECOND as usize).take(count as usize) {
        results.extend(requests(worker.work(now)));
        for (token, call) in worker.calls.fresh() {
            let body = proxy.answer(&call.body, EPOCH + now);
            results.extend(requests(worker.answer(token, &ok(body), now).unwrap()));
        }
    }
    results
}

#[test]
fn shard_has_its_share_of_the_cluster_slots() {
    assert_eq!(slot("123456789"), 0x31c3);
    for number in [2, 3, 16, 100, 1024] {
        let parts = Shards::new(number);
        let tags = Tags::new("shop", parts);
        for part in parts.all() {
            let tag = tags.of(part);
            assert!(tag.starts_with(&format!("2:shop:{}:", part.number())), "{tag}");
            assert_eq!(slot(tag) * u32::from(number) / 16_384, u32::from(part.number()), "{tag}");
        }
        assert_eq!(tags.of(Shard::FIRST), Tags::new("shop", Shards::new(2)).of(Shard::FIRST));
    }
    assert_eq!(Tags::new("shop", Shards::ONE).of(Shard::FIRST), "2:shop");
}

#[test]
fn callers_are_spread_evenly_over_shards() {
    let mut counts = [0; 16];
    let parts = Shards::new(16);
    // Of random seeds, one in some thousands has a shard with more.
    let mut random = Rng::with_seed(16);
    for _ in 0..16_000 {
        let key = Key { hash: 0, second_hash: random.u64(..) };
        counts[usize::from(parts.of(key).number())] += 1;
    }
    assert!(counts.iter().all(|count| *count <= parts.share(16_000)), "{counts:?}");
    assert_eq!([Shards::ONE.share(100), parts.share(0), parts.share(3)], [100, 0, 3]);
    // Four to eight standard deviations above its share.
    for keys in (0..1000).map(|_| random.u64(1..1 << 40)) {
        let mean = keys.div_ceil(16) as f64;
        let deviations = (parts.share(keys) as f64 - mean) / mean.sqrt();
        let is_all = parts.share(keys) == keys;
        assert!(
            is_all && mean < 20.0 || (4.0..=8.0).contains(&deviations),
            "{deviations} of {keys}"
        );
    }
}

#[test]
fn request_waits_until_the_secret_is_known() {
    let (mut worker, mut proxy) = (worker(), Proxy::default());
    let ticket = worker.ask(caller(5), 0);
    assert!(worker.work(0).is_empty());
    let (token, call) = worker.calls.one();
    assert!(worker.work(1).is_empty() && worker.calls.none(), "it waits for the first part");
    worker.answer(token, &ok(proxy.answer(&call.body, EPOCH)), 2);
    assert_eq!(proxy.parts(), 1);
    let results = steps(&mut worker, &mut proxy, 2, 3);
    assert!(
        matches!(results[..], [(number, QuestionResult::Decided { .. })] if number == ticket),
        "{results:?}"
    );
    assert_eq!(proxy.parts(), 2);
}

#[test]
fn first_shard_must_reply_once_before_others() {
    let (mut worker, mut proxy) = (worker(), Proxy::default());
    proxy.away.insert(0);
    let ticket = worker.ask(caller(5), 0);
    assert_eq!(steps(&mut worker, &mut proxy, 0, 3), [(ticket, QuestionResult::Degraded)]);
    assert_eq!((worker.outbox.unavailable_shards(), proxy.parts()), (16, 0));
    proxy.away.clear();
    steps(&mut worker, &mut proxy, 10 * MILLISECOND, 500);
    assert!(worker.is_connected());
    // From then on the other shards work without it.
    proxy.away.insert(0);
    let now = SECOND;
    let tickets = [0, 5, 9].map(|part| worker.ask(caller(part), now));
    let results = steps(&mut worker, &mut proxy, now, 10);
    let alone = |ticket| results.contains(&(ticket, QuestionResult::Degraded));
    assert_eq!(tickets.map(alone), [true, false, false], "{results:?}");
    assert_eq!(worker.outbox.unavailable_shards(), 1);
}

#[test]
fn failed_shard_recovers_independently() {
    let (mut worker, mut proxy) = (worker(), Proxy::default());
    connect(&mut worker, &mut proxy);
    proxy.away.extend([3, 7]);
    let tickets = [3, 5, 7].map(|part| worker.ask(caller(part), SECOND));
    let results = steps(&mut worker, &mut proxy, SECOND, 5);
    assert_eq!(
        results.iter().filter(|(_, settled)| *settled == QuestionResult::Degraded).count(),
        2
    );
    assert!(!results.contains(&(tickets[1], QuestionResult::Degraded)));
    assert_eq!(
        worker.client.log_lines,
        [
            "global rules: shards 3, 7 of 16 of Redis (cluster `redis`) are unavailable: the proxy gets no reply from \
             the node (upstream failure); `on_failure` of each rule applies to the callers there"
        ]
    );
    // Its callers do not wait, and probes are separate calls.
    let ticket = worker.ask(caller(7), SECOND + 6 * MILLISECOND);
    assert_eq!(
        requests(worker.work(SECOND + 6 * MILLISECOND)),
        [(ticket, QuestionResult::Degraded)]
    );
    proxy.away.remove(&7);
    steps(&mut worker, &mut proxy, SECOND + 7 * MILLISECOND, 1200);
    assert_eq!(worker.outbox.unavailable_shards(), 1);
    proxy.away.clear();
    steps(&mut worker, &mut proxy, 3 * SECOND, 2000);
    assert!(worker.is_connected());
    assert!(worker.client.log_lines[1].contains("shard 7 of 16"), "{:?}", worker.client.log_lines);
    assert!(
        worker.client.log_lines[1].ends_with("is available again; still unavailable shards: 1")
    );
    assert!(
        worker.client.log_lines[2].ends_with("is available again; all gateways count together")
    );
}

#[test]
fn first_shard_gets_a_heartbeat_each_second() {
    let (mut worker, mut proxy) = (worker(), Proxy::default());
    connect(&mut worker, &mut proxy);
    let mut asked = 0;
    for now in (SECOND..5 * SECOND).step_by(10 * MILLISECOND as usize) {
        worker.ask(caller(5), now);
        worker.work(now);
        for (token, call) in worker.calls.fresh() {
            asked += usize::from(String::from_utf8_lossy(&call.body).contains("{2:test:0:"));
            worker.answer(token, &ok(proxy.answer(&call.body, EPOCH + now)), now);
        }
    }
    assert!((3..=5).contains(&asked), "{asked}");
}

#[test]
fn reply_of_another_shard_is_garbage() {
    let (mut worker, mut proxy) = (worker(), Proxy::default());
    connect(&mut worker, &mut proxy);
    // They have loaded the script.
    [5, 6].into_iter().for_each(|part| _ = worker.ask(caller(part), SECOND / 2));
    steps(&mut worker, &mut proxy, SECOND / 2, 5);
    let tickets = [5, 6].map(|part| worker.ask(caller(part), SECOND));
    worker.work(SECOND);
    let mut results = Vec::new();
    for _ in 0..2 {
        let (token, call) = worker.calls.one();
        let body = String::from_utf8(proxy.answer(&call.body, EPOCH + SECOND)).unwrap();
        let swapped = body.replace(":-5\r\n", ":-9\r\n").replace(":-6\r\n", ":-5\r\n");
        let swapped = ok(swapped.replace(":-9\r\n", ":-6\r\n").into());
        results.extend(requests(worker.answer(token, &swapped, SECOND).unwrap()));
    }
    assert_eq!(results, tickets.map(|ticket| (ticket, QuestionResult::Degraded)));
    assert_eq!(worker.client.counts.failures, [("garbage", 4)]);
    let news = &worker.client.log_lines;
    assert!(
        news[0].contains("shards 5, 6 of 16") && news[0].contains("is not from Redis"),
        "{news:?}"
    );
}

/// The gateway receives the secret for hashing callers.
fn connect(worker: &mut Worker, proxy: &mut Proxy) {
    worker.ask(caller(0), 0);
    assert_eq!(steps(worker, proxy, 0, 4).len(), 1);
    assert!(worker.is_connected());
}

/// Its own secret differs, and only the first shard would report that.
#[test]
fn new_worker_adopts_the_secret_of_the_others() {
    for first_is_away in [false, true] {
        let data = Rc::new(FakeSharedData::default());
        let open = |own| Worker::with_secret(&data, Shards::new(16), own);
        let (mut early, mut late) = (open(Seed { k0: 7, k1: 7 }), open(Seed { k0: 8, k1: 8 }));
        let mut proxy = Proxy::default();
        connect(&mut early, &mut proxy);
        if first_is_away {
            proxy.away.insert(0);
        }
        let ticket = late.ask(caller(5), SECOND);
        let results = steps(&mut late, &mut proxy, SECOND, 5);
        assert_eq!(results, [(ticket, QuestionResult::Repeat)], "it is hashed with another");
        assert!(late.client.seed() == early.client.seed());
        assert_eq!(proxy.parts(), 1, "nobody was asked under a secret of its own");
    }
}

/// An unavailable shard is logged once, regardless of other lines.
#[test]
fn log_names_every_failure() {
    let (mut worker, mut proxy) = (worker(), Proxy::default());
    connect(&mut worker, &mut proxy);
    let now = SECOND / 2;
    [3, 5, 7].into_iter().for_each(|part| _ = worker.ask(caller(part), now));
    worker.work(now);
    let (token, _) = worker.calls.one();
    let (here, there) = ("-READONLY a replica\r\n", "-LOADING its data\r\n");
    worker.answer(token, &ok([here, there, here, "+OK\r\n"].concat().into()), now).unwrap();
    for (part, failed) in
        [(9, "-TRYAGAIN it moves\r\n+OK\r\n"), (11, "-LOADING its data\r\n+OK\r\n")]
    {
        let now = now + part * MILLISECOND;
        worker.ask(caller(part), now);
        worker.work(now);
        let token = worker.calls.fresh().pop().unwrap().0;
        worker.answer(token, &ok(failed.into()), now).unwrap();
    }
    assert_eq!(worker.outbox.unavailable_shards(), 5);
    let parts = ["shards 3, 7 of", "READONLY", "shard 5 of", "LOADING", "shard 9 of", "TRYAGAIN"];
    let news = &worker.client.log_lines;
    let names = |(line, parts): (&String, &[&str])| parts.iter().all(|part| line.contains(part));
    assert!(news.iter().zip(parts.chunks(2)).all(names) && news.len() == 3, "{news:?}");
}
