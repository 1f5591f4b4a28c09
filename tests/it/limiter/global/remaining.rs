//! The remaining permits of a rule are unknown and not reported if Redis did not check it.

use diana_policy::redis::OnFailure;
use kit::fake::FakeRequest;
use kit::model::redis::Redis;

use super::Worker;

/// A local rule that refuses the second request, and a global one.
const TWO: &str = "explain: {header: x-why, token_env: TOKEN}
redis: {cluster: redis}
limits:
- Url: /
  rules:
  - {name: own, actor: account, unit: day, rpu: 1, algo: W, scope: local}
  - {name: fleet, actor: account, unit: day, rpu: 9, algo: W, scope: global, near: 50}";

fn ask(worker: &mut Worker, redis: &mut Redis, request: &FakeRequest) {
    worker.request(request);
    worker.steps(9, &mut |call, time| Some(redis.answer(&call.body, time)));
}

#[test]
fn unchecked_rule_reports_no_remaining_permits() {
    let (mut worker, mut redis) = (Worker::of(TWO, OnFailure::Gateway), Redis::default());
    ask(&mut worker, &mut redis, &super::request());
    let both = worker.fields.get("ratelimit").unwrap();
    assert!(both.contains("\"own\";r=0") && both.contains("\"fleet\";r=8"), "{both}");
    ask(&mut worker, &mut redis, &super::request());
    assert_eq!(worker.verdicts, [true, false]);
    let limit = worker.refused.get("ratelimit").unwrap();
    assert!(limit.starts_with("\"own\";r=0;t=") && !limit.contains("fleet"), "{limit}");
    let policy = worker.refused.get("ratelimit-policy").unwrap();
    assert!(policy.contains("\"own\";q=1") && policy.contains("\"fleet\";q=9"), "{policy}");
    let refusal = worker.refusal.take().unwrap();
    let left: Vec<_> = refusal.records().iter().map(|record| record.outcome.remaining()).collect();
    assert_eq!(left, [Some(0), None]);
    let state = refusal.records()[1].state();
    assert!(state.contains(" limit=9 key="), "{state}");
}

/// Redis is not called for a request that never fits.
#[test]
fn cost_above_the_limit_reports_no_remaining_permits() {
    let rule =
        "actor: account, unit: day, rpu: {metadata: [plan, limit], default: 100, max: 100}, algo: W,
                cost: {header: x-cost, max: 50}, scope: global, response: {body: '{remaining}'}";
    let (mut worker, mut redis) = (Worker::new(rule), Redis::default());
    let path = ["metadata", "filter_metadata", "plan", "limit"];
    let request = super::request().property(&path, 10_f64.to_le_bytes());
    (0..3).for_each(|_| ask(&mut worker, &mut redis, &request));
    worker.request(&request.header("x-cost", "50"));
    assert_eq!(worker.verdicts, [true, true, true, false]);
    assert_eq!(worker.refused.get("ratelimit"), None);
    assert!(worker.refused.get("ratelimit-policy").is_some());
    assert_eq!(&*worker.refusal.unwrap().body(b""), "");
}
