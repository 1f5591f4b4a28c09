//! Any bytes are a configuration or a list of problems, in bounded memory. An accepted
//! configuration can be run.

use diana_limiter::Limiter;
use diana_policy::key::Seed;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use std::rc::Rc;

pub fn run(input: &[u8]) {
    // Aliases and merge keys do not multiply the memory of a document.
    let parsed = crate::bounded::to((4 << 10) * input.len() + (4 << 20), || {
        diana_config::Reader::default().policy(input)
    });
    let policy = match parsed {
        Ok(policy) => policy,
        Err(problems) => {
            let text = problems.to_string();
            assert!(!text.is_empty() && text.len() <= (64 << 10) + 256 * input.len());
            return;
        }
    };
    let (own, summary) = (policy.own(), diana_limiter::sizing::summary(&policy));
    assert_eq!(
        diana_limiter::sizing::summary(
            &diana_config::Reader::default().policy(input).expect("it was accepted")
        ),
        summary
    );
    let mut limiter =
        Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, Rc::new(FakeSharedData::default()))
            .expect("it can be built");
    limiter.decide(&FakeRequest::get("/share/qq"), 0, &FakeClock::default());
    // A remote document may have fewer keys, and none that a local one may not have.
    if let Ok(remote) = diana_config::Reader::remote(own.clone()).policy(input) {
        assert_eq!(
            remote.limits.len(),
            diana_config::Reader::default().policy(input).expect("it was accepted").limits.len()
        );
        assert!(remote.remote.is_none());
    }
}
