//! Callers who are banned: looked for before any rule judges.

use crate::check::{Check, CheckOutcome};
use crate::limiter::Limiter;

impl Limiter {
    /// Whether a rule bans the caller of the request in hand. Then only such rules have a say.
    #[inline(never)]
    pub(crate) fn is_banned(&mut self) -> bool {
        for check in &mut self.scratch.checks {
            let Some(judge) = self.rules.get_mut(check.rule) else { continue };
            if let Some(bans) = &mut judge.bans
                && check.is_own
                && !check.shadow
            {
                let left = bans.left(check.key, self.scratch.now.mono);
                check.ban(judge, left);
            }
        }
        self.heed_bans()
    }

    /// If a rule bans the caller, all others have no say, and what Redis charged goes back. Whether it is
    /// so.
    pub(crate) fn heed_bans(&mut self) -> bool {
        let bans = |check: &Check| matches!(check.says, CheckOutcome::Bans(_));
        let any = self.scratch.checks.iter().any(bans);
        if any {
            self.give_back();
            self.silence();
            self.scratch.checks.retain(bans);
        }
        any
    }
}
