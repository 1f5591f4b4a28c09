//! The branch for rules that each worker counts for itself: callers whom it knows, and who may go on at once by all of
//! them, are charged without being checked before. Nearly all requests are such ones.

use super::Engine;
use super::opinion::Says;

impl Engine {
    /// Charges the request in hand if every rule that applies knows its caller and admits it at once, and nobody asks why.
    /// Whether it is so; otherwise nothing is charged.
    pub(super) fn charge_known(&mut self) -> bool {
        if self.scratch.explains {
            return false;
        }
        let now = self.scratch.now;
        let mut opinions = self.scratch.opinions.iter();
        let refuses = opinions.position(|opinion| {
            let is_open = matches!(opinion.says, Says::Nothing);
            let judge = self.rules.get_mut(opinion.rule).filter(|_| is_open);
            !judge.is_some_and(|judge| {
                judge.store.under(opinion.plan).charge_known(opinion.key, opinion.cost, now)
            })
        });
        let charged = refuses.unwrap_or(self.scratch.opinions.len());
        for opinion in self.scratch.opinions.iter().take(charged).rev() {
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            match refuses {
                None => judge.counts.allowed += 1,
                Some(_) => judge.store.any().uncharge_known(opinion.key),
            }
        }
        refuses.is_none()
    }
}
