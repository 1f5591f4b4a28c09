//! Requests in flight in scope `local`.

use std::rc::Rc;

use diana_limiter::Verdict;
use diana_store::permit::Permit;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::seed;
use kit::store::gateway::START;

use super::limiter;

const LIMIT: usize = 3;

/// Checked by an oracle, also with more callers than the table holds, so that most share slots, in
/// a table that fills and empties repeatedly.
#[test]
fn local_slots_agree_with_the_oracle() {
    let mut rng = Rng::with_seed(seed::next());
    for keys in [1, 20, 1000] {
        let document = format!(
            "keys: {keys}\nlimits: [{{Url: /, rules: [{{actor: device, in_flight: {LIMIT}, scope: local}}]}}]"
        );
        let mut limiter = limiter(&document, &Rc::new(FakeSharedData::default()));
        let clock = FakeClock::at(START);
        let mut open: Vec<(usize, Permit)> = Vec::new();
        let (mut refused, mut most) = (0, 60);
        for step in 0..20_000 {
            clock.0.set(clock.0.get().later(rng.u64(..50_000)));
            if step % 1_000 == 0 {
                most = rng.usize(..200);
            }
            if open.len() > most || !open.is_empty() && rng.u8(..5) < 2 {
                let (_, permit) = open.swap_remove(rng.usize(..open.len()));
                limiter.finish(permit, &FakeEnding::answered(200), clock.0.get());
                continue;
            }
            let caller = rng.usize(..80);
            let request = FakeRequest::get("/").header("x-device-id", caller.to_string());
            let own = open.iter().filter(|(of, _)| *of == caller).count();
            match limiter.decide(&request, 0, &clock) {
                Verdict::Admit(permit, _) => {
                    assert!(own < LIMIT);
                    open.push((caller, permit));
                }
                Verdict::Refuse(_) => {
                    assert!(keys < 1000 || own == LIMIT, "{own}");
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(refused > 50, "too tame: {refused}");
        for (_, permit) in open {
            limiter.finish(permit, &FakeEnding::answered(200), clock.0.get());
        }
        // Callers that shared a state have all their slots again.
        for caller in 0..80 {
            clock.0.set(clock.0.get().later(1_000_000));
            let request = FakeRequest::get("/").header("x-device-id", caller.to_string());
            let mut taken = Vec::new();
            for _ in 0..LIMIT {
                let Verdict::Admit(permit, _) = limiter.decide(&request, 0, &clock) else {
                    panic!("{caller} of {keys}");
                };
                taken.push(permit);
            }
            for permit in taken {
                limiter.finish(permit, &FakeEnding::answered(200), clock.0.get());
            }
        }
    }
}
