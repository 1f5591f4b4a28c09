//! Bans of callers that share an overflow bucket.

use super::{Gate, from};

/// One state is in use for a day. All other callers share overflow buckets.
#[test]
fn caller_of_an_overflow_bucket_is_not_banned() {
    let mut gate = Gate::new(
        "{keys: 1, limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 1, scope: local,
           ban: {after: 1, within: 1h, for: 1h}}]}]}",
    );
    let callers: Vec<_> = (0..5000).map(|n| from(&n.to_string())).collect();
    let refused: Vec<_> = callers.iter().filter(|caller| !gate.admits(caller)).collect();
    assert!(refused.len() > 1000, "{}", refused.len());
    assert!(refused.iter().all(|caller| gate.refusal(caller).by.state().starts_with("refused ")));
}
