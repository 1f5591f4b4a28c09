//! Permits leased by a worker: their end and their return.

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};

use kit::store::gateway::Gateway;
use kit::store::rule::Rule;

const MS: u64 = 1000;

fn gateway(short: &str, quota: Quota, workers: usize) -> Gateway {
    Gateway::new(Rule::new(short, quota), 100, workers)
}

fn second(rpu: u64) -> Quota {
    Quota::new(Unit::Second, rpu)
}

#[test]
fn at_most_half_of_a_bucket_is_leased() {
    let gateway = gateway("TB", Quota { burst: Some(1000), ..second(100_000) }, 21);
    // The bucket is never empty, and each of twenty workers requests a hundred permits.
    for request in 0..4000 {
        gateway.pass(50);
        assert!(gateway.request(request % 20, 1).unwrap().is_admitted());
    }
    gateway.pass(20 * MS);
    let left = gateway.flood(20);
    assert!((500..1000).contains(&left), "{left} are left for a newcomer");
}

/// Their callers, or their turns, would be unknown.
#[test]
fn shared_buckets_and_queues_have_no_leases() {
    let lined = Quota { max_delay: Some(SECOND), burst: Some(1000), ..second(1000) };
    for (short, quota, others) in
        [("W", second(1000), 32), ("TB", second(1000), 32), ("TB", lined, 0)]
    {
        let gateway = Gateway::new(Rule::new(short, quota), 16, 1);
        (100..100 + others).for_each(|other| _ = gateway.request(0, other));
        (0..100).for_each(|_| _ = gateway.request(0, 1));
        assert_eq!(gateway.left(1), 900, "{short}");
    }
}

#[test]
fn zero_limit_reads_no_shared_data() {
    let gateway = gateway("W", second(0), 1);
    assert_eq!(gateway.flood(0), 0);
    assert_eq!(gateway.asked.get(), 0);
}
