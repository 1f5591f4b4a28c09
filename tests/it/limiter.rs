//! Complete decisions.

mod bans;
mod building;
mod callers;
mod charging;
mod examples;
mod explanation;
mod global;
mod holding;
mod hot;
mod plans;
mod protocols;
mod races;
mod reads;
mod remaining;
mod replaces;
mod responses;
mod scenarios;
mod survival;
mod upkeep;

use diana_limiter::{Limiter, Refusal, Unbuildable, Verdict};
use diana_policy::Policy;
use diana_policy::key::Seed;
use diana_policy::port::{Destination, SharedData};
use diana_policy::redis::OnFailure;
use diana_policy::time::{Now, SECOND};
use diana_redis::backend::RedisConnection;
use diana_redis::client::{Client, Endpoint};
use diana_redis::protocol::Login;
use diana_redis::shard::Shards;
use diana_store::permit::End;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::fake::{FakeClock, FakeMetrics, FakeRequest, FakeSharedData};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limiter of a worker. It shares these data with the other workers of its gateway.
pub fn limiter(text: &str, data: Rc<dyn SharedData>) -> Limiter {
    let policy = crate::config::policy(text);
    Limiter::standalone(policy, Seed { k0: 7, k1: 9 }, data).unwrap()
}

/// A limiter of a worker with a Redis. Its gateway has this secret.
fn fleet_limiter(
    policy: Policy,
    own: Seed,
    data: Rc<FakeSharedData>,
) -> Result<Limiter, Unbuildable> {
    connected_limiter(policy, own, data).map(|(limiter, _)| limiter)
}

/// The same, with its connection to Redis.
fn connected_limiter(
    policy: Policy,
    own: Seed,
    data: Rc<FakeSharedData>,
) -> Result<(Limiter, RedisConnection), Unbuildable> {
    let way = Endpoint {
        destination: Destination::Cluster("redis".into()),
        timeout: SECOND / 50,
        login: Login::default(),
        shards: policy.redis.as_ref().map_or(Shards::ONE, |redis| Shards::new(redis.parts)),
        gateways: 1,
    };
    // Unique, in place of a random number.
    static NUMBER: AtomicU64 = AtomicU64::new(7);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let client = Client::new(way, "test", data.clone(), Seed { k0: 1, k1: 2 }, number);
    let mut tables = Tables::default();
    let stores = Stores::new("test".into(), data, &mut tables);
    let on_failure = policy.redis.as_ref().map_or(OnFailure::Gateway, |redis| redis.on_failure);
    let redis = RedisConnection::new(client, on_failure);
    Ok((Limiter::new(policy, own, stores, Some(Box::new(redis.clone())))?, redis))
}

/// A limiter with its clock.
pub struct Gate {
    limiter: Limiter,
    clock: FakeClock,
}

impl Gate {
    pub fn new(yaml: &str) -> Gate {
        Gate::of(limiter(yaml, Rc::new(FakeSharedData::default())))
    }

    /// Other workers of its gateway have detected that Redis is unavailable.
    fn cut_off(yaml: &str) -> Gate {
        let data = Rc::default();
        crate::redis::client::Worker::of(&data).fail(0);
        Gate::of(fleet_limiter(crate::config::policy(yaml), Seed { k0: 7, k1: 9 }, data).unwrap())
    }

    fn of(limiter: Limiter) -> Gate {
        let gate = Gate { limiter, clock: FakeClock::default() };
        // A full minute on the wall clock.
        gate.clock.0.set(Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 });
        gate
    }

    pub fn wait(&self, micros: u64) {
        let Now { mono, wall } = self.clock.0.get();
        self.clock.0.set(Now { mono: mono + micros, wall: wall + micros });
    }

    pub fn decide(&mut self, request: &FakeRequest) -> Verdict {
        self.limiter.decide(request, 0, &self.clock)
    }

    pub fn admits(&mut self, request: &FakeRequest) -> bool {
        match self.decide(request) {
            Verdict::Hold(held) => held.position.finish(End::Served),
            Verdict::Refuse(_) => return false,
            Verdict::Admit(..) | Verdict::Pending { .. } => {}
        }
        true
    }

    pub fn refusal(&mut self, request: &FakeRequest) -> Refusal {
        match self.decide(request) {
            Verdict::Refuse(refusal) => *refusal,
            admitted => panic!("{admitted:?}"),
        }
    }

    pub fn metrics(&mut self) -> Vec<String> {
        let lines = FakeMetrics::default();
        self.limiter.flush("ns", &lines);
        let mut lines = lines.0.take();
        lines.sort();
        lines
    }
}

fn from(account: &str) -> FakeRequest {
    FakeRequest::get("/sample/1").header("x-account-id", account)
}
