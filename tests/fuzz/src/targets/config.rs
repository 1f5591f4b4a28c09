//! Any bytes are a configuration or a list of problems, in bounded memory; what is accepted can be run.

use std::rc::Rc;

use diana::config;
use diana::engine::Engine;
use diana::key::Seed;
use diana::port::fake::{FakeClock, FakeRequest, FakeSharedData};

pub fn run(input: &[u8]) {
    // Aliases and merges do not multiply what a document takes.
    let parsed = crate::bounded::to((4 << 10) * input.len() + (4 << 20), || config::parse(input));
    let policy = match parsed {
        Ok(policy) => policy,
        Err(problems) => {
            let told = problems.to_string();
            assert!(!told.is_empty() && told.len() <= (64 << 10) + 256 * input.len());
            return;
        }
    };
    let (own, summary) = (policy.own(), diana::sizing::summary(&policy));
    assert_eq!(diana::sizing::summary(&config::parse(input).expect("it was accepted")), summary);
    let mut engine =
        Engine::alone(policy, Seed { k0: 1, k1: 2 }, Rc::new(FakeSharedData::default()))
            .expect("it can be built");
    engine.decide(&FakeRequest::get("/share/qq"), &FakeClock::default());
    // From elsewhere it says less, and nothing that it could not say here.
    if let Ok(remote) = config::parse_remote(input, &own) {
        assert_eq!(
            remote.limits.len(),
            config::parse(input).expect("it was accepted").limits.len()
        );
        assert!(remote.remote.is_none());
    }
}
