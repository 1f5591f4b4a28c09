//! Requests with more than one round of calls to Redis.

use diana_limiter::{Ready, Verdict};
use diana_policy::key::Seed;
use diana_policy::port::{Answer, Call, Clock};
use diana_policy::redis::OnFailure;
use diana_policy::time::SECOND;
use kit::fake::FakeRequest;
use kit::model::proxy::Proxy;
use kit::model::redis::Redis;

use super::{MILLISECOND, Worker, opinion, request};
use crate::support::redis::{decides, other_seed};

const LINE: &str = "unit: second, rpu: 100, algo: LB, scope: global";

fn spread(rules: &[String]) -> Worker {
    let text = format!(
        "actors: {{account: [{{header: x-account-id}}], device: [{{header: x-device-id}}]}}
redis: {{cluster: redis, proxied: true, parts: 64}}
limits: [{{Url: /, rules: [{}]}}]",
        rules.join(", ")
    );
    Worker::of(&text, OnFailure::Gateway)
}

fn with_device() -> FakeRequest {
    request().header("x-device-id", "phone")
}

/// Nothing depends on an earlier reply.
#[test]
fn queue_positions_of_two_shards_are_requested_at_once() {
    let mut worker =
        spread(&[format!("{{actor: account, {LINE}}}"), format!("{{actor: device, {LINE}}}")]);
    let mut proxy = Proxy::default();
    worker.request(&with_device());
    worker.steps(3, &mut |call, time| Some(proxy.answer(&call.body, time)));
    assert_eq!(worker.admitted(), 1);
}

/// The second round has the full timeout.
#[test]
fn second_round_has_the_full_timeout() {
    let mut worker = spread(&[
        "{actor: account, unit: day, rpu: 9, algo: W, scope: global}".into(),
        format!("{{actor: device, {LINE}}}"),
    ]);
    let mut proxy = Proxy::default();
    let mut redis = |call: &Call, time| Some(proxy.answer(&call.body, time));
    // Loads the script.
    worker.request(&with_device());
    worker.steps(9, &mut redis);
    let before = worker.called;
    worker.late = 8;
    worker.request(&with_device());
    worker.steps(40, &mut redis);
    assert_eq!(worker.admitted(), 2);
    assert!(worker.limiter.is_connected(), "nothing came too late");
    let calls = worker.callout.sent.borrow();
    assert_eq!(calls.len() - before, 2);
    // Half of it, which leaves time for a second attempt.
    assert!(calls[before + 1].timeout > 9 * MILLISECOND, "{}", calls[before + 1].timeout);
}

/// A request that is hashed again has waited already.
#[test]
fn repeated_question_has_only_the_remaining_timeout() {
    for rule in [LINE, "unit: day, rpu: 9, algo: W, scope: global"] {
        let mut worker = Worker::new(&format!("actor: account, {rule}"));
        worker.late = 10;
        worker.request(&request());
        worker.steps(15, &mut |_, _| Some(other_seed(Seed { k0: 8, k1: 9 })));
        let calls = worker.callout.sent.borrow();
        assert_eq!(calls.len(), 2, "{rule}");
        assert!(calls[1].timeout <= 10 * MILLISECOND, "{rule}: {}", calls[1].timeout);
    }
}

/// One call of the host resumes a limited number of requests, and Redis may be available again in
/// the meantime.
#[test]
fn failed_question_is_not_repeated_after_recovery() {
    let mut worker = Worker::new("actor: account, unit: day, rpu: 9, algo: W, scope: global");
    worker.request(&request());
    let now = worker.clock.0.get().later(MILLISECOND);
    worker.work(now);
    worker.called = 2;
    let fetch = || None;
    let answer = Answer { status: Some(503), size: 0, body: &fetch, header: &|_| None };
    for attempt in 0..2 {
        assert!(worker.take_reply(attempt, &answer, now));
        worker.work(now);
    }
    let ready = worker.limiter.next_ready(now);
    let Some(Ready::Request(mut ready)) = ready else { panic!("no reply") };
    assert!(!worker.limiter.is_connected());
    let mut redis = Redis::default();
    worker.steps(500, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert!(worker.limiter.is_connected());
    let verdict = worker.limiter.resume(&mut ready, worker.clock.now());
    assert!(matches!(verdict, Some(Verdict::Admit(..))), "{verdict:?}");
}

/// While one rule waits for Redis, another one uses its lease.
#[test]
fn lease_is_charged_while_another_rule_waits() {
    let mut worker = Worker::new(
        "name: all, actor: all, unit: hour, rpu: 1000, algo: W, scope: global}, \
         {name: one, actor: account, unit: day, rpu: 9, algo: W, scope: global",
    );
    let mut redis = Redis::default();
    for number in 1..=100 {
        let request = FakeRequest::get("/").header("x-account-id", number.to_string());
        worker.request(&request);
        while worker.verdicts.len() < number {
            worker.step(&mut |call, time| Some(redis.answer(&call.body, time)));
        }
        let left = format!("\"all\";r={};", 1000 - number);
        let field = worker.fields.get("ratelimit").unwrap();
        assert!(field.contains(&left), "{field}, not {left}");
    }
}

/// It was charged for an instant at which the request can no longer leave.
#[test]
fn request_that_misses_its_turn_in_redis_is_refused() {
    let mut worker = Worker::new(
        "name: fleet, actor: account, unit: second, rpu: 100, burst: 9, algo: TB, max_delay: 1s, scope: global}, \
         {name: here, actor: account, unit: second, rpu: 10, algo: LB, scope: local",
    );
    let mut redis = Redis::default();
    (0..3).for_each(|_| worker.request(&request()));
    worker.steps(5, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert_eq!(worker.verdicts, [true, false, false]);
    let field = worker.refused.get("ratelimit").unwrap();
    assert!(field.contains("\"fleet\";r=6"), "{field}");
}

/// Another window may have begun in between.
#[test]
fn local_rule_is_checked_again_at_the_reply() {
    let rules = "actor: account, unit: day, rpu: 10, algo: W, scope: global}, \
                 {actor: account, unit: second, rpu: 1, algo: W, scope: local";
    let mut worker = Worker::new(rules);
    worker.late = 4;
    worker.clock.0.set(worker.clock.0.get().later(SECOND - 2 * MILLISECOND));
    worker.request(&request());
    worker.steps(9, &mut |_, _| Some(decides(&[&[0][..], &opinion(0, 9, 41)].concat())));
    worker.request(&request());
    assert_eq!(worker.verdicts, [true, false]);
}

/// Redis reports a ban together with the charges of all rules.
#[test]
fn banned_request_reports_only_the_ban() {
    let ban = "ban: {after: 3, within: 10s, for: 1m}";
    let rule = |name: &str, more: &str| {
        format!("{{name: {name}, actor: account, unit: day, rpu: 9, algo: W, scope: global{more}}}")
    };
    let rules = [rule("one", &format!(", {ban}")), rule("other", "")].join(", ");
    let text = format!("redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{rules}]}}]");
    let mut worker = Worker::of(&text, OnFailure::Gateway);
    worker.request(&request());
    let minute = (60 * SECOND).cast_signed();
    let charged = [&[0][..], &opinion(0, 8, 41), &opinion(0, minute, 0), &opinion(0, 8, 42)];
    worker.step(&mut |_, _| Some(decides(&charged.concat())));
    assert_eq!(worker.verdicts, [false]);
    let field = worker.refused.get("ratelimit-policy").unwrap();
    assert!(field.contains("one") && !field.contains("other"), "{field}");
}
