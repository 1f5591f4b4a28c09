//! Requests in flight: never more than the limit, and whoever fits is let in, whatever becomes of them.

mod config;
mod holders;
mod ledger;
mod local;
mod places;
pub mod reports;
mod spoiled;
mod store;
mod values;

use std::rc::Rc;

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::time::{Micros, SECOND};
use kit::fake::FakeSharedData;

/// Within this time the places of a worker that died are free.
const AGAIN: Micros = 2 * SECOND;

fn engine(document: &str, data: &Rc<FakeSharedData>) -> Engine {
    let policy =
        diana_config::parse(document.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
    Engine::alone(policy, Seed { k0: 1, k1: 2 }, data.clone()).unwrap()
}
