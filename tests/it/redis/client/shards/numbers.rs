//! Gateways of one namespace with different numbers of shards.

use diana_policy::time::SECOND;
use kit::fake::FakeSharedData;
use kit::model::proxy::Proxy;

use super::{Rc, Shards, Worker, caller, steps};

fn gateway(parts: u16) -> Worker {
    Worker::with_shards(&Rc::new(FakeSharedData::default()), Shards::new(parts))
}

/// In these seconds, each gateway makes two calls per second.
fn live(gateways: &mut [&mut Worker], proxy: &mut Proxy, seconds: std::ops::Range<u64>) {
    for half in 2 * seconds.start..2 * seconds.end {
        for worker in gateways.iter_mut() {
            worker.ask(caller(5), half * SECOND / 2);
            assert_eq!(steps(worker, proxy, half * SECOND / 2, 5).len(), 1);
            assert!(worker.is_connected());
        }
    }
}

#[test]
fn different_shard_numbers_are_logged_once() {
    let ([mut one, mut two, mut other], mut proxy) = ([8, 8, 2].map(gateway), Proxy::default());
    live(&mut [&mut one, &mut two], &mut proxy, 0..3);
    assert_eq!((one.client.counts.apart, one.client.log_lines.len()), (0, 0), "they are the same");
    live(&mut [&mut one, &mut two, &mut other], &mut proxy, 3..10);
    for (worker, parts) in [(&one, 8), (&two, 8), (&other, 2)] {
        let say = format!(
            "global rules: gateways have different values of `redis.parts`, this one {parts}; until all have the same, \
             callers may get up to one limit for each value"
        );
        assert_eq!(worker.client.log_lines, [say]);
        let counted = worker.client.counts.apart;
        assert!((5..=15).contains(&counted), "asked once a second, {counted} answers counted it");
    }
    // Its gateway has been restarted.
    live(&mut [&mut one, &mut two], &mut proxy, 10..18);
    for worker in [one, two] {
        assert_eq!(
            worker.client.log_lines[1..],
            ["global rules: all gateways have `redis.parts` = 8 now"]
        );
    }
}
