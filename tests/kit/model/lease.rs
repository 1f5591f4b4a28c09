//! Leases of a caller.

use diana_policy::decision::Decision;
use diana_policy::time::Now;

use super::rule_state::Look;
use super::{Asked, LEASE};

impl Look {
    pub(super) fn lend(&mut self, now: Now) -> u64 {
        if self.asked.want == 0 || self.algorithm.spend_by(&self.state.words, now).is_none() {
            return 0;
        }
        // The deadline of a permit, even if none remains.
        let life = match self.fits(now, 0, 1) {
            Decision::Admit { .. } => self.algorithm.spend_by(&self.new, now),
            Decision::Refuse { .. } => return 0,
        };
        let life = life.map_or(0, |until| (until - now.mono).min(LEASE));
        let block = self.block_of(self.left(now), life);
        if block > 0 {
            assert_eq!(self.fits(now, 0, block), Decision::NOW);
            self.keep();
        }
        block
    }

    /// A block for `life` ticks: at most the wanted permits, those that are expected to be spent then and two
    /// requests more, and an equal part of the remaining ones or the permits of one
    /// request.
    fn block_of(&self, left: u64, life: u64) -> u64 {
        let Asked { want, ahead, unit_cost, .. } = self.asked;
        let in_time = want.saturating_mul(life).div_ceil(ahead.max(1)) + 2 * unit_cost;
        let want = if life < ahead { in_time.min(want) } else { want };
        let parts = (self.state.terms.leased() / (4 * self.asked.want)).clamp(1, 8);
        let left = left.min((left / parts).max(unit_cost));
        let room = self.algorithm.properties().most_out.saturating_sub(self.state.terms.leased());
        want.min(left).min(room).min(1 << 16) / unit_cost * unit_cost
    }
}
