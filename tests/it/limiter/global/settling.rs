//! Settlements when Redis becomes unavailable, or was unavailable at the charge.

use kit::model::redis::Redis;

use super::bans::receipts;
use super::{Worker, request};

const LIMIT: usize = 10;

fn rule(algo: &str) -> String {
    format!(
        "actor: account, unit: day, rpu: {LIMIT}, algo: {algo}, scope: global,
         cost: {{response: {{header: x-used}}, reserve: 1, max: 20}}"
    )
}

/// Also in a gateway in degraded mode. In a rule that counts all requests, no permits are only
/// reserved.
#[test]
fn share_of_a_gateway_separates_reserved_from_used() {
    for (counts, is_charged) in [(", count: {status: [401]}", true), ("", false)] {
        let rule =
            format!("actor: account, unit: day, rpu: {LIMIT}, algo: W, scope: global{counts}");
        let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
        worker.request(&request());
        worker.steps(5, &mut |call, time| {
            redis.hear_another(time);
            Some(redis.answer(&call.body, time))
        });
        worker.away(50);
        (0..LIMIT).for_each(|_| worker.request(&request()));
        assert!(worker.admitted() <= LIMIT / 2 + 1, "{} of {LIMIT}", worker.admitted());
        let after = worker.refused.iter().find(|(name, _)| *name == "retry-after").unwrap();
        assert_eq!(after.1 == "1", is_charged, "{after:?}");
    }
}

/// A check without a charge needs no return when the client leaves.
#[test]
fn client_that_leaves_before_the_reply_is_not_charged() {
    let rule = rule("SW").replace("reserve: 1", "reserve: 0");
    let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
    (0..5).for_each(|_| worker.request(&request()));
    for ticket in std::mem::take(&mut worker.waiting).into_keys() {
        worker.limiter.cancel(ticket);
    }
    let mut back = Vec::new();
    worker.steps(50, &mut |call, time| {
        back.extend(receipts(call));
        Some(redis.answer(&call.body, time))
    });
    assert_eq!((worker.called, &back[..]), (1, &[][..]));
}
