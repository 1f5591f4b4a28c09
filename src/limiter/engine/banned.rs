//! Callers who are banned: looked for before any rule judges.

use super::opinion::Says;
use super::{Engine, Opinion};

impl Engine {
    /// Whether a rule bans the caller of the request in hand. Then only such rules have a say.
    #[inline(never)]
    pub(super) fn is_banned(&mut self) -> bool {
        for opinion in &mut self.scratch.opinions {
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            if let Some(bans) = &mut judge.bans
                && opinion.is_own
                && !opinion.shadow
            {
                let left = bans.left(opinion.key, self.scratch.now.mono);
                opinion.ban(judge, left);
            }
        }
        self.heed_bans()
    }

    /// If a rule bans the caller, all others have no say, and what Redis charged goes back. Whether it is
    /// so.
    pub(super) fn heed_bans(&mut self) -> bool {
        let bans = |opinion: &Opinion| matches!(opinion.says, Says::Bans(_));
        let any = self.scratch.opinions.iter().any(bans);
        if any {
            self.give_back();
            self.silence();
            self.scratch.opinions.retain(bans);
        }
        any
    }
}
