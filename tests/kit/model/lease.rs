//! Leases of a caller.

use diana_policy::decision::Decision;
use diana_policy::time::Now;

use super::rule_state::Look;
use super::{AHEAD, Asked, LEASE};

impl Look {
    pub(super) fn lend(&mut self, now: Now) -> u64 {
        if self.algorithm.spend_by(&self.state.words, now).is_none() {
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

    /// A block for `life` ticks: at most the wanted and the remaining permits.
    fn block_of(&self, left: u64, life: u64) -> u64 {
        let Asked { want, unit_cost, .. } = self.asked;
        let want = if life < AHEAD { (want * life).div_ceil(AHEAD) } else { want };
        let room = self.algorithm.properties().most_out.saturating_sub(self.state.terms.leased());
        want.min(left).min(room).min(1 << 16) / unit_cost * unit_cost
    }
}
