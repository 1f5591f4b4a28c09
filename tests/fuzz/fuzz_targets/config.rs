//! Any bytes are a configuration or a list of problems; what is accepted can be run.

#![no_main]

use diana::config;
use diana::engine::Engine;
use diana::key::Seed;
use diana::port::fake::{FakeClock, FakeRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    match config::parse(text) {
        Ok(policy) => {
            let mut engine = Engine::alone(policy, Seed { k0: 1, k1: 2 });
            engine.decide(&FakeRequest::get("/share/qq"), &FakeClock::default());
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
});
