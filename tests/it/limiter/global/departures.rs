//! Requests that leave while they wait for Redis, roots that end, and a worker's log about Redis.

use std::rc::Rc;

use diana_limiter::{Ready, Verdict};
use diana_policy::key::Seed;
use diana_policy::port::{Answer, Call, Clock};
use diana_policy::redis::OnFailure;
use diana_policy::time::SECOND;
use kit::fake::{FakeMetrics, FakeRequest, FakeSharedData};
use kit::model::redis::Redis;

use super::bans::receipts;
use super::{MILLISECOND, SEED, Worker, opinion, request};
use crate::support::redis::{Seen, decides, other_seed};

const RULE: &str = "name: r, actor: account, unit: day, rpu: 10, algo: W, scope: global";

/// Redis grants one request under a receipt.
fn grants() -> Vec<u8> {
    decides(&[&[0][..], &opinion(0, 9, 41)].concat())
}

impl Worker {
    /// Sends due calls, without replies. Returns new calls.
    fn send(&mut self) -> Vec<Call> {
        let now = self.clock.now().later(MILLISECOND);
        self.clock.0.set(now);
        self.work(now);
        assert_eq!(self.limiter.ready(), 0);
        let fresh = self.callout.sent.borrow()[self.called..].to_vec();
        self.called += fresh.len();
        fresh
    }

    fn send_request(&mut self) -> u64 {
        let verdict = self.limiter.decide(&request(), 0, &self.clock);
        let Verdict::Pending { id: ticket } = verdict else { panic!("{verdict:?}") };
        ticket
    }

    /// The reply to the last call arrives.
    fn on_reply(&mut self, body: Vec<u8>) -> usize {
        let token = self.called as u32 - 1;
        let answer =
            Answer { status: Some(200), size: 9, body: &|| Some(body.clone()), header: &|_| None };
        assert!(self.take_reply(token, &answer, self.clock.now()), "its call");
        self.limiter.ready()
    }

    /// Resumes the request that Redis has replied to.
    fn resumed(&mut self) -> Option<Verdict> {
        let ready = self.limiter.next_ready(self.clock.now());
        let Some(Ready::Request(mut ready)) = ready else { panic!("no reply") };
        self.limiter.resume(&mut ready, self.clock.now())
    }
}

/// A client leaves before its reply arrives, or just after. The charge is returned.
#[test]
fn charge_of_a_departed_client_is_returned() {
    for is_late in [false, true] {
        let mut worker = Worker::new(RULE);
        let ticket = worker.send_request();
        assert_eq!(worker.send().len(), 1);
        if !is_late {
            assert!(worker.limiter.cancel(ticket));
        }
        assert_eq!(worker.on_reply(grants()), usize::from(is_late));
        assert_eq!(worker.limiter.cancel(ticket), is_late);
        assert!(worker.limiter.next_ready(worker.clock.now()).is_none());
        let back: Vec<(u64, u64)> = worker.send().iter().flat_map(receipts).collect();
        assert_eq!(back, [(41, 1)], "late: {is_late}");
    }
}

#[test]
fn probes_continue_while_redis_is_needed() {
    let mut worker = Worker::new(RULE);
    worker.request(&request());
    worker.steps(100, &mut |_, _| None);
    assert!(!worker.limiter.is_connected());
    let news = worker.redis.take_log_lines();
    assert!(news.iter().any(|line| line.contains("Redis")), "{news:?}");
    assert_eq!(worker.redis.take_log_lines(), Vec::<String>::new());
    let mut probes = 0;
    let mut away = |_: &Call, _| {
        probes += 1;
        None
    };
    worker.steps(3000, &mut away);
    worker.redis.stop_probing();
    // One may be in transit.
    worker.steps(100, &mut away);
    assert!(probes > 0);
    worker.steps(3000, &mut |_, _| panic!("asked for nobody"));
}

#[test]
fn idle_worker_learns_that_redis_is_available() {
    let data = Rc::new(FakeSharedData::default());
    let text = format!("redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{{RULE}}}]}}]");
    let worker = || Worker::in_gateway(data.clone(), &text, OnFailure::Gateway, SEED);
    let (mut busy, mut idle) = (worker(), worker());
    busy.request(&request());
    busy.steps(30, &mut |_, _| None);
    // The host calls the idle worker for another reason.
    idle.step(&mut |_, _| panic!("a call for no request"));
    assert!(!idle.limiter.is_connected());
    let mut redis = Redis::default();
    busy.steps(2000, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert!(busy.limiter.is_connected());
    idle.request(&request());
    assert_eq!(idle.waiting.len(), 1, "its first request was decided without Redis");
}

/// The gateway's own secret has no effect.
#[test]
fn caller_has_one_key_in_all_gateways() {
    let sent = |own| {
        let text = format!("redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{{RULE}}}]}}]");
        let mut worker = Worker::with_secret(&text, OnFailure::Gateway, own);
        worker.send_request();
        worker.send().iter().map(|call| Seen::of(call).callers).collect::<Vec<_>>()
    };
    let one = sent(SEED);
    assert_eq!(one.len(), 1);
    assert_eq!(sent(Seed { k0: 8, k1: 9 }), one);
}

/// The gateway hashes its own callers with its own secret, independent of that of the fleet.
#[test]
fn new_fleet_secret_keeps_usage_of_the_gateway() {
    let text = format!(
        "redis: {{cluster: redis}}\nlimits: [{{Url: /own, rules: [{{actor: account, unit: day, rpu: 1, algo: W}}]}},
           {{Url: /all, rules: [{{{RULE}}}]}}]"
    );
    let mut worker = Worker::of(&text, OnFailure::Gateway);
    let at = |path| FakeRequest::get(path).header("x-account-id", "ann");
    worker.request(&at("/own"));
    worker.request(&at("/all"));
    let mut answers = [grants(), other_seed(Seed { k0: 8, k1: 9 })].into_iter().collect::<Vec<_>>();
    let mut asked = Vec::new();
    worker.steps(9, &mut |call, _| {
        asked.push(Seen::of(call).callers);
        answers.pop()
    });
    worker.request(&at("/own"));
    assert_eq!(worker.verdicts, [true, true, false]);
    // In Redis no caller keeps its former key.
    let [before, after] = &asked[..] else { panic!("{asked:?}") };
    assert!(!before.is_empty() && after.iter().all(|caller| !before.contains(caller)), "{asked:?}");
}

#[test]
fn record_has_the_scope_in_force() {
    let (mut worker, mut redis) = (Worker::new(RULE), Redis::default());
    let states = |worker: &Worker| worker.state.clone().unwrap();
    worker.request(&request());
    worker.steps(9, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert!(states(&worker).starts_with("admitted rule=r scope=global "), "{}", states(&worker));
    let lines = FakeMetrics::default();
    worker.limiter.flush("ns", &lines);
    assert!(lines.0.take().contains(&"diana.ns.mode.fleet +1".into()));
    worker.request(&request());
    worker.steps(60, &mut |_, _| None);
    assert!(states(&worker).starts_with("admitted rule=r scope=gateway "), "{}", states(&worker));
    worker.limiter.flush("ns", &lines);
    let lines = lines.0.take();
    assert!(lines.contains(&"diana.ns.mode.fleet -1".into()), "{lines:?}");
    assert!(lines.contains(&"diana.ns.mode.gateway +1".into()), "{lines:?}");
}

/// A caller that shares a state in Redis is not banned for usage of others.
#[test]
fn refusal_by_a_shared_state_counts_towards_no_ban() {
    let mut worker = Worker::new(&format!("{RULE}, ban: {{after: 1, within: 10s, for: 1m}}"));
    let hour = (3600 * SECOND).cast_signed();
    let mut shares = opinion(hour, 3, 0);
    shares[9] = 1;
    worker.send_request();
    worker.send();
    let answer = decides(&[&[-1][..], &shares, &opinion(0, 0, 0)].concat());
    assert_eq!(worker.on_reply(answer), 1);
    let verdict = worker.resumed();
    assert!(matches!(verdict, Some(Verdict::Refuse(_))));
    assert!(worker.send().is_empty(), "a call to Redis");
    let lines = FakeMetrics::default();
    worker.limiter.flush("ns", &lines);
    assert!(lines.0.take().contains(&"diana.ns.rule.r.overflow 1".into()));
}

#[test]
fn refused_request_reports_remaining_permits_of_redis() {
    for retry in [-1, 1_000_000] {
        let mut worker = Worker::new(RULE);
        worker.send_request();
        worker.send();
        let answer = decides(&[&[-1][..], &opinion(retry, 3, 0)].concat());
        assert_eq!(worker.on_reply(answer), 1);
        let verdict = worker.resumed();
        let Some(Verdict::Refuse(refusal)) = verdict else { panic!("{verdict:?}") };
        assert_eq!(refusal.by.outcome.remaining(), Some(3));
    }
}
