//! What of a request Redis is asked first, where its rules lie in several parts.
//!
//! Each part charges its rules by itself. Where another part refuses, what can be taken back is, and counts as out
//! until then, so that it refuses nobody for good. What cannot be taken back is asked about once all others have
//! agreed: places in a line, of which only the last one comes back, and quotas.

use crate::check::{Basis, Check, CheckOutcome};
use crate::commit::Turn;
use crate::limiter::CompiledRule;
use diana_redis::part::Parts;

/// What is asked in one batch.
pub(crate) struct Round {
    /// Whether what is charged may have to be taken back.
    pub(crate) tentative: bool,
    /// Whether it is what was held back of a request that was asked about before.
    pub(crate) follows: bool,
    /// Whether what cannot be taken back is not asked about yet.
    holds_back: bool,
}

impl Round {
    /// The next one about rules of which some are pending.
    pub(crate) fn of(checks: &[Check], rules: &[CompiledRule], parts: Parts) -> Round {
        let pending = || checks.iter().filter(|it| matches!(it.says, CheckOutcome::Pending));
        let mut places = pending().map(|check| parts.of(check.key));
        let first = places.next();
        let is_spread = places.any(|part| Some(part) != first);
        let comes_back = |check: &Check| !is_final(check, rules);
        let by_redis = |check: &Check| {
            matches!(
                check.says,
                CheckOutcome::Admits { by: Basis::Redis(_) | Basis::Agreed(_), .. }
            )
        };
        Round {
            // Rules that are counted elsewhere are judged anew when the answer comes.
            tentative: is_spread || pending().count() < checks.len(),
            follows: !pending().any(comes_back)
                && checks.iter().any(|check| by_redis(check) || check.alone),
            holds_back: is_spread && pending().any(comes_back),
        }
    }

    /// Whether a pending rule is asked about later.
    pub(crate) fn waits(&self, check: &Check, rules: &[CompiledRule]) -> bool {
        self.holds_back && is_final(check, rules)
    }
}

/// Whether what the rule charges cannot be taken back.
fn is_final(check: &Check, rules: &[CompiledRule]) -> bool {
    let turn = rules.get(check.rule).map(|judge| judge.turn);
    matches!(turn, Some(Turn::Third | Turn::Last))
}
