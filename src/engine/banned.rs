//! Callers who are banned: looked for before any rule judges.

use super::Engine;
use crate::decision::Decision;

impl Engine {
    /// Whether a rule bans the caller of the request in hand. Then only such rules have a say.
    #[inline(never)]
    pub(super) fn is_banned(&mut self) -> bool {
        let mut any = false;
        for opinion in self.scratch.opinions.iter_mut().filter(|opinion| !opinion.shadow) {
            let judge = self.rules.get_mut(opinion.rule);
            let Some(bans) = judge.and_then(|judge| judge.bans.as_mut()) else { continue };
            let left = bans.left(opinion.key, self.scratch.now.mono);
            if left > 0 && opinion.is_own {
                (opinion.decision, opinion.known) = (Decision::retry(left), Some(0));
                (opinion.banned, any) = (true, true);
            }
        }
        if any {
            // The others have no say.
            for opinion in self.scratch.opinions.iter_mut().filter(|opinion| !opinion.banned) {
                (opinion.decision, opinion.known, opinion.shadow) = (Decision::NOW, Some(0), true);
            }
        }
        any
    }
}
