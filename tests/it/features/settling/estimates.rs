//! A reservation that a filter before Diana estimates.

use std::rc::Rc;

use diana_limiter::Verdict;
use diana_store::permit::Permit;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::seed;

const LIMIT: u64 = 10_000;
const DEFAULT: u64 = 50;
const MOST: u64 = 3_000;

const RULE: &str = "{actor: all, unit: day, rpu: 10000, algo: ALGO, scope: SCOPE, cost: {max: 5000,
    response: {metadata: [llm, total], typed: true},
    reserve: {metadata: [llm, estimate], typed: true, default: 50, max: 3000}}}";

fn typed(key: &str) -> [&str; 4] {
    ["metadata", "typed_filter_metadata", "llm", key]
}

/// A request is admitted if its estimate fits into what is neither used nor reserved. Then it is charged what it used,
/// whether that fits or not.
#[test]
fn estimate_is_reserved_and_settled() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut refused, mut exceeded) = (0, 0);
    for (algo, scope) in [("W", "local"), ("W", "gateway"), ("SW", "local"), ("SW", "gateway")] {
        for _ in 0..40 {
            let rule = RULE.replace("ALGO", algo).replace("SCOPE", scope);
            let text = format!("limits: [{{Url: /, rules: [{rule}]}}]");
            let mut limiter = crate::limiter::limiter(&text, Rc::new(FakeSharedData::default()));
            let (clock, mut charged) = (FakeClock::default(), 0);
            let mut open: Vec<(Permit, u64)> = Vec::new();
            for _ in 0..40 {
                if rng.u8(0..3) == 0 && !open.is_empty() {
                    let (permit, reserved) = open.swap_remove(rng.usize(0..open.len()));
                    let used = rng.u64(0..2 * reserved).min(5_000);
                    let ending =
                        FakeEnding::answered(200).property(&typed("total"), used.to_le_bytes());
                    let mut permit = permit;
                    limiter.on_response(&mut permit, &ending);
                    limiter.finish(permit, &ending, clock.0.get());
                    charged = charged - reserved + used;
                    exceeded += u64::from(charged > LIMIT);
                    continue;
                }
                let estimate = match rng.u8(0..5) {
                    0 => None,
                    1 => Some(rng.u64(0..1 << 50)),
                    _ => Some(rng.u64(0..2_000)),
                };
                let mut request = FakeRequest::get("/");
                if let Some(estimate) = estimate {
                    request = request.property(&typed("estimate"), estimate.to_le_bytes());
                }
                let reserved = estimate.unwrap_or(DEFAULT).clamp(1, MOST);
                let verdict = limiter.decide(&request, 0, &clock);
                let fits = charged + reserved <= LIMIT;
                match verdict {
                    Verdict::Admit(permit, _) if fits => {
                        open.push((permit, reserved));
                        charged += reserved;
                    }
                    Verdict::Refuse(_) if !fits => refused += 1,
                    _ => {
                        panic!("{reserved} of {estimate:?} with {charged} charged, {algo} {scope}")
                    }
                }
            }
        }
    }
    assert!(refused > 100 && exceeded > 10, "{refused} refused, {exceeded} in debt");
}
