//! What of a request Redis is asked first, where its rules lie in several parts.
//!
//! Each part charges its rules by itself. Where another part refuses, what can be taken back is, and counts as out
//! until then, so that it refuses nobody for good. What cannot be taken back is asked about once all others have
//! agreed: places in a line, of which only the last one comes back, and quotas.

use super::charge::Turn;
use super::opinion::{Basis, Says};
use super::{Judge, Opinion};
use diana_redis::part::Parts;

/// What is asked in one batch.
pub(super) struct Round {
    /// Whether what is charged may have to be taken back.
    pub(super) tentative: bool,
    /// Whether it is what was held back of a request that was asked about before.
    pub(super) follows: bool,
    /// Whether what cannot be taken back is not asked about yet.
    holds_back: bool,
}

impl Round {
    /// The next one about rules of which some are pending.
    pub(super) fn of(opinions: &[Opinion], rules: &[Judge], parts: Parts) -> Round {
        let pending = || opinions.iter().filter(|it| matches!(it.says, Says::Pending));
        let mut places = pending().map(|opinion| parts.of(opinion.key));
        let first = places.next();
        let is_spread = places.any(|part| Some(part) != first);
        let comes_back = |opinion: &Opinion| !is_final(opinion, rules);
        let by_redis = |opinion: &Opinion| {
            matches!(opinion.says, Says::Admits { by: Basis::Redis(_) | Basis::Agreed(_), .. })
        };
        Round {
            // Rules that are counted elsewhere are judged anew when the answer comes.
            tentative: is_spread || pending().count() < opinions.len(),
            follows: !pending().any(comes_back)
                && opinions.iter().any(|opinion| by_redis(opinion) || opinion.alone),
            holds_back: is_spread && pending().any(comes_back),
        }
    }

    /// Whether a pending rule is asked about later.
    pub(super) fn waits(&self, opinion: &Opinion, rules: &[Judge]) -> bool {
        self.holds_back && is_final(opinion, rules)
    }
}

/// Whether what the rule charges cannot be taken back.
fn is_final(opinion: &Opinion, rules: &[Judge]) -> bool {
    let turn = rules.get(opinion.rule).map(|judge| judge.turn);
    matches!(turn, Some(Turn::Third | Turn::Last))
}
