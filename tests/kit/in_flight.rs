//! Gateways of one worker that count requests in flight in Redis; how calls and answers get there is up to whoever drives
//! them.

pub mod spoiled;

use std::rc::Rc;

use diana_core::engine::{Engine, Resumed};
use diana_core::key::Seed;
use diana_core::permit::{End, Permit};
use diana_core::port::Clock;
use diana_core::redis::client::{Client, Endpoint};
use diana_core::redis::part::Parts;
use diana_core::redis::protocol::Login;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Micros, Now};
use diana_core::verdict::Verdict;
use fastrand::Rng;

use crate::ending::FakeEnding;
use crate::fake::{FakeRequest, FakeSharedData};

/// The requests that wait for an answer, by their tickets, and their callers.
pub type Asked = Vec<(u64, usize)>;

pub fn request(caller: usize) -> FakeRequest {
    FakeRequest::get("/").header("x-device-id", caller.to_string())
}

/// Lets `limit` requests of a caller in at a time, and goes by a random number in Redis.
pub fn engine(limit: usize, timeout: Micros, random: u64) -> Engine {
    let document = format!(
        "limits: [{{Url: /, rules: [{{actor: device, in_flight: {limit}, scope: global}}]}}]\n\
         redis: {{cluster: c, on_failure: deny}}"
    );
    let policy = diana_config::parse(document.as_bytes()).unwrap_or_else(|all| panic!("{all}"));
    let way = Endpoint { cluster: "c".into(), timeout, login: Login::default(), parts: Parts::ONE };
    let data = Rc::new(FakeSharedData::default());
    let seed = Seed { k0: 1, k1: 2 };
    let client = Client::new(way, "test", data.clone(), seed, random);
    let mut tables = Tables::default();
    let stores = Stores::new("test".into(), data, &mut tables);
    Engine::new(policy, seed, stores, Some(client)).unwrap()
}

/// Goes on with a request whose answer has come. Its caller, and what was decided; nothing if the client has left, as one in
/// ten does.
pub fn go_on(
    engine: &mut Engine,
    asked: &mut Asked,
    resumed: &Resumed,
    clock: &dyn Clock,
    rng: &mut Rng,
) -> Option<(usize, Verdict)> {
    let place = asked.iter().position(|(ticket, _)| *ticket == resumed.ticket).unwrap();
    let (_, caller) = asked.swap_remove(place);
    let now = clock.now();
    if rng.u8(..10) == 0 {
        engine.abandon(resumed, now);
        return None;
    }
    let verdict = engine.resume(resumed, now);
    Some((caller, verdict.unwrap_or_else(|| engine.decide_again(resumed, &request(caller), clock))))
}

/// A request ends, in some way.
pub fn end(engine: &mut Engine, permit: Permit, now: Now, rng: &mut Rng) {
    if rng.bool() {
        engine.settle(permit, &FakeEnding::answered(200), now);
    } else {
        permit.finish(End::Left);
        engine.take_back(now);
    }
}
