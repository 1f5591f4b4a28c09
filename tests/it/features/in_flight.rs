//! Requests in flight: never more than the limit, and a request that fits is admitted, for all
//! outcomes of others.

mod config;
mod holders;
mod local;
pub mod reports;
mod slots;
mod values;

use std::rc::Rc;

use diana_limiter::Limiter;
use diana_policy::key::Seed;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::in_flight::damage;
use kit::seed;

fn limiter(document: &str, data: &Rc<FakeSharedData>) -> Limiter {
    let policy = diana_config::Reader::default()
        .policy(document.as_bytes())
        .unwrap_or_else(|problems| panic!("{problems}"));
    Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, data.clone()).unwrap()
}

#[test]
fn damaged_shared_data_loses_no_slot_for_good() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..1_000 {
        damage::play(&mut rng);
    }
}
