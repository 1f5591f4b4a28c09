//! Callers who are banned: looked for before any rule judges.

use super::{Engine, Opinion};
use crate::decision::Decision;
use crate::time::Micros;

impl Engine {
    /// Whether a rule bans the caller of the request in hand. Then only such rules have a say.
    #[inline(never)]
    pub(super) fn is_banned(&mut self) -> bool {
        for opinion in &mut self.scratch.opinions {
            let judge = self.rules.get_mut(opinion.rule);
            if let Some(bans) = judge.and_then(|judge| judge.bans.as_mut())
                && opinion.is_own
                && !opinion.shadow
            {
                opinion.ban(bans.left(opinion.key, self.scratch.now.mono));
            }
        }
        self.heed_bans()
    }

    /// If a rule bans the caller, all others have no say, and what Redis charged goes back. Whether it is
    /// so.
    pub(super) fn heed_bans(&mut self) -> bool {
        let any = self.scratch.opinions.iter().any(|opinion| opinion.banned);
        if any {
            self.give_back();
            self.scratch.opinions.retain(|opinion| opinion.banned);
        }
        any
    }
}

impl Opinion {
    /// The rule bans the caller for so long, if for any time at all.
    pub(super) fn ban(&mut self, left: Micros) {
        if left > 0 {
            (self.decision, self.known) = (Decision::retry(left), Some(0));
            self.banned = true;
        }
    }
}
