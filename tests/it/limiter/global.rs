//! A worker with a Redis that replies, becomes unavailable, or knows of a ban first.

mod arrears;
mod bans;
mod departures;
mod orders;
mod remaining;
mod rounds;
mod settling;
mod shadow;
mod shards;
mod single;
mod stalls;

use diana_limiter::{Limiter, Ready, Refusal, Verdict};
use diana_policy::headers::Headers;
use diana_policy::key::Seed;
use diana_policy::port::{Answer, Call, Clock};
use diana_policy::redis::OnFailure;
use diana_policy::time::{Now, SECOND};
use diana_redis::backend::RedisConnection;
use diana_store::permit::Permit;
use kit::fake::{FakeCallout, FakeClock, FakeRequest, FakeSharedData};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use kit::model::redis::Redis;
use kit::store::gateway::START;

const MILLISECOND: u64 = SECOND / 1000;
const SEED: Seed = Seed { k0: 1, k1: 2 };

struct Worker {
    limiter: Limiter,
    redis: RedisConnection,
    clock: FakeClock,
    callout: FakeCallout,
    /// Calls that Redis received.
    called: usize,
    /// Milliseconds until a reply, half of them until Redis receives the call; and the pending
    /// replies: their arrival, their call and their body.
    late: u64,
    coming: VecDeque<(u64, u32, Option<Vec<u8>>)>,
    /// The callers of waiting requests.
    waiting: HashMap<u64, FakeRequest>,
    /// The numbers of the orders, by their streams.
    orders: Vec<u64>,
    /// The outcomes of all decided requests, in order.
    verdicts: Vec<bool>,
    /// The permits of admitted requests.
    permits: Vec<Permit>,
    /// The headers of the last admitted request, and its state in the access log.
    fields: Headers,
    state: Option<String>,
    /// The last refused request, and its headers.
    refused: Headers,
    refusal: Option<Refusal>,
}

impl Worker {
    fn new(rule: &str) -> Worker {
        Worker::with(rule, OnFailure::Gateway)
    }

    fn with(rule: &str, on_failure: OnFailure) -> Worker {
        Worker::of(
            &format!("redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{{rule}}}]}}]"),
            on_failure,
        )
    }

    fn of(text: &str, on_failure: OnFailure) -> Worker {
        Worker::with_secret(text, on_failure, SEED)
    }

    /// A worker of a gateway with its own secret.
    fn with_secret(text: &str, on_failure: OnFailure, own: Seed) -> Worker {
        Worker::in_gateway(Rc::new(FakeSharedData::default()), text, on_failure, own)
    }

    /// Another worker with this shared data.
    fn in_gateway(
        data: Rc<FakeSharedData>,
        text: &str,
        on_failure: OnFailure,
        own: Seed,
    ) -> Worker {
        let text = format!("accepted: {{headers: true, filter_state: true}}\n{text}");
        let mut policy = diana_config::Reader::default()
            .policy(text.as_bytes())
            .unwrap_or_else(|problems| panic!("{problems}"));
        policy.redis.as_mut().unwrap().on_failure = on_failure;
        let (limiter, redis) = super::connected_limiter(policy, own, data).unwrap();
        let worker = Worker {
            limiter,
            redis,
            clock: FakeClock::default(),
            callout: FakeCallout::default(),
            called: 0,
            late: 0,
            coming: VecDeque::new(),
            waiting: HashMap::new(),
            // Tests count allocations.
            orders: Vec::with_capacity(1 << 12),
            verdicts: Vec::new(),
            permits: Vec::new(),
            fields: Headers::default(),
            state: None,
            refused: Headers::default(),
            refusal: None,
        };
        worker.clock.0.set(START);
        worker
    }

    fn request(&mut self, request: &FakeRequest) {
        let verdict = self.limiter.decide(request, 0, &self.clock);
        self.take(verdict, request);
    }

    fn take(&mut self, verdict: Verdict, request: &FakeRequest) {
        match verdict {
            Verdict::Pending { id: ticket } => drop(self.waiting.insert(ticket, request.clone())),
            Verdict::Refuse(refusal) => {
                self.verdicts.push(false);
                self.refused = refusal.headers();
                self.refusal = Some(*refusal);
            }
            Verdict::Admit(permit, report) => {
                self.verdicts.push(true);
                self.permits.push(permit);
                self.state = report.as_ref().and_then(|it| Some(it.by.as_ref()?.state()));
                self.fields = report.map(|report| report.headers()).unwrap_or_default();
            }
            Verdict::Hold(held) => {
                self.verdicts.push(true);
                self.fields = held.report.headers();
                self.permits.extend([held.position, held.permit]);
            }
        }
    }

    /// Advances the clock by a millisecond, in which `redis` replies. `None` is Envoy's response if
    /// it cannot be reached.
    fn step(&mut self, redis: &mut dyn FnMut(&Call, u64) -> Option<Vec<u8>>) {
        let now = self.clock.0.get().later(MILLISECOND);
        self.clock.0.set(now);
        self.work(now);
        let fresh = self.callout.sent.borrow()[self.called..].to_vec();
        for call in fresh {
            let comes = now.mono + self.late * MILLISECOND;
            let there = now.later(self.late * MILLISECOND / 2);
            self.coming.push_back((comes, self.called as u32, redis(&call, there.wall)));
            self.called += 1;
        }
        while self.coming.front().is_some_and(|(comes, ..)| *comes <= now.mono) {
            let Some((_, token, body)) = self.coming.pop_front() else { return };
            let fetch = || body.clone();
            let status = Some(if body.is_some() { 200 } else { 503 });
            let answer = Answer { status, size: 9, body: &fetch, header: &|_| None };
            self.take_reply(token, &answer, now);
            self.work(now);
        }
        self.resume();
    }

    /// Makes the calls that are due.
    fn work(&mut self, now: Now) {
        self.redis.work(now, &self.callout);
        self.limiter.take_results(now);
    }

    /// Returns true if the reply is to a call of this worker.
    fn take_reply(&mut self, token: u32, answer: &Answer<'_>, now: Now) -> bool {
        let is_own = self.redis.on_reply(token, answer, now);
        self.limiter.take_results(now);
        is_own
    }

    /// Resumes the requests that Redis has replied to.
    fn resume(&mut self) {
        while let Some(ready) = self.limiter.next_ready(self.clock.now()) {
            let Ready::Request(mut ready) = ready else { panic!("an order") };
            let request = self.waiting.remove(&ready.waiter.id).expect("it waits");
            let verdict = self.limiter.resume(&mut ready, self.clock.now());
            let again = || self.limiter.restart(&mut ready, &request, &self.clock);
            let verdict = verdict.unwrap_or_else(again);
            self.take(verdict, &request);
        }
    }

    fn steps(&mut self, count: usize, redis: &mut dyn FnMut(&Call, u64) -> Option<Vec<u8>>) {
        (0..count).for_each(|_| self.step(redis));
    }

    /// Redis is unavailable for this time.
    fn away(&mut self, milliseconds: usize) {
        self.request(&request());
        self.steps(milliseconds, &mut |_, _| None);
        assert!(!self.limiter.is_connected());
    }

    /// Redis is available again.
    fn back(&mut self, redis: &mut Redis) {
        self.steps(2000, &mut |call, time| Some(redis.answer(&call.body, time)));
        assert!(self.limiter.is_connected());
    }

    fn admitted(&self) -> usize {
        assert!(self.waiting.is_empty());
        self.verdicts.iter().filter(|admitted| **admitted).count()
    }
}

fn request() -> FakeRequest {
    FakeRequest::get("/").header("x-account-id", "ann")
}

/// The reply about a rule: retry delay, remaining permits, a receipt, and no lease.
fn opinion(retry: i64, remaining: i64, receipt: i64) -> [i64; 10] {
    [retry, 0, remaining, receipt, 0, 0, 0, 0, 0, 0]
}

#[test]
fn zero_limit_queries_no_redis() {
    let mut worker = Worker::new("actor: account, unit: day, rpu: 0, scope: global");
    (0..3).for_each(|_| worker.request(&request()));
    // A heartbeat is no question.
    worker.steps(30, &mut |call, _| {
        assert!(crate::support::redis::Seen::of(call).callers.is_empty(), "asked");
        None
    });
    assert_eq!(worker.verdicts, [false; 3]);
}

/// Redis decides about simultaneous requests before any of them takes its queue position.
#[test]
fn request_admitted_by_redis_waits_for_its_local_turn() {
    let rules = "actor: account, unit: day, rpu: 10, algo: W, scope: global}, \
                 {actor: account, unit: second, rpu: 10, algo: LB, scope: local";
    let (mut worker, mut redis) = (Worker::new(rules), Redis::default());
    (0..3).for_each(|_| worker.request(&request()));
    worker.steps(3, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert_eq!(worker.admitted(), 3);
}
