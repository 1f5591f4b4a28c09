//! The callers that this worker knows something about.

use super::counter_spec::CounterSpec;
use super::lease::{Block, Known, Lease};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};

/// Callers of one rule that are known at a time.
pub(super) const LINES: usize = 4096;

/// Callers of all rules of a configuration that are known at a time, unless there are more rules than pages.
const ALL_LINES: usize = 1 << 20;

/// Lines that take memory at once. What each configuration takes anew and gives back leaves no large holes.
const PAGE: usize = 64;

/// Blocks given back at once.
const BATCH: usize = 1024;

/// A block that is given up, and goes back to the level above.
pub struct Returned {
    /// The caller.
    pub key: Key,
    /// The plan under which it was leased.
    pub plan: u32,
    /// The block.
    pub block: Block,
    /// Its unspent permits.
    pub left: u64,
}

/// A caller has one line where its lease can be.
#[derive(Debug)]
pub struct Leases {
    pages: Vec<Box<[Lease]>>,
    most: usize,
    /// Lines in which a block may lie.
    list: Vec<u16>,
    /// The plan by which something is found out about callers.
    pub plan: u32,
}

impl Leases {
    /// Room for some of a rule's callers.
    pub fn of(spec: &CounterSpec) -> Leases {
        let plan = spec.plans.as_ref().map_or(0, |plans| plans.first());
        Leases { plan, ..Leases::new(spec.keys.min(spec.lines)) }
    }

    fn new(callers: usize) -> Leases {
        Leases { pages: Vec::new(), most: callers.clamp(1, LINES), list: Vec::new(), plan: 0 }
    }

    /// Lines of each of so many rules. Rules share them, so that many rules leave memory for callers: a caller without a line
    /// is counted as exactly, and costs more.
    pub(crate) fn lines(rules: usize) -> usize {
        (ALL_LINES / rules.max(1)).clamp(PAGE, LINES)
    }

    /// Bytes that they take for that many callers, in that many lines.
    pub(crate) fn bytes(callers: usize, lines: usize) -> u64 {
        // A word has room for a line's part of its page's place and for its number in the list.
        let line = size_of::<Lease>() + size_of::<u64>();
        (callers.min(lines).clamp(1, LINES) * line) as u64
    }

    /// The line of a caller, if it is its.
    pub fn find(&mut self, key: Key) -> Option<&mut Lease> {
        let line = self.line(key);
        at(&mut self.pages, line).filter(|lease| lease.key() == key)
    }

    /// The line of a caller, made its unless another's permits lie there.
    pub fn claim(&mut self, key: Key) -> Option<&mut Lease> {
        let line = self.line(key);
        if self.pages.is_empty() {
            self.pages.resize_with(self.most.div_ceil(PAGE), Box::default);
        }
        let page = self.pages.get_mut(line / PAGE)?;
        if page.is_empty() {
            let lines = PAGE.min(self.most - line / PAGE * PAGE);
            *page = vec![Lease::default(); lines].into();
        }
        let lease = page.get_mut(line % PAGE)?;
        if lease.key() != key {
            if lease.is_out() {
                return None;
            }
            let listed = lease.listed;
            *lease = Lease::of(key, self.plan);
            lease.listed = listed;
        }
        Some(lease)
    }

    /// Decides about a request, if that is possible here.
    pub fn decide(&mut self, key: Key, cost: u64, now: Now) -> Known {
        self.find(key).map_or(Known::Nothing, |lease| lease.decide(cost, now))
    }

    /// Spends permits of a caller's lease. Returns the receipt of its block, or `None` if too few are left.
    pub fn spend(&mut self, key: Key, cost: u64, now: Now) -> Option<u64> {
        let lease = self.find(key).filter(|lease| lease.has(cost, now))?;
        lease.spend(cost);
        Some(lease.block().0.receipt)
    }

    /// Takes permits back that were spent last.
    pub fn unspend(&mut self, key: Key, cost: u64) {
        if let Some(lease) = self.find(key) {
            lease.unspend(cost);
        }
    }

    /// Gives a caller that has a line a new block, to be spent within `life` ticks of `now`. The block before, which is
    /// given up.
    pub fn renew(&mut self, key: Key, block: Block, life: Micros, now: Now) -> (Block, u64) {
        let line = self.line(key);
        let Some(lease) = self.find(key) else { return (block, block.permits) };
        let before = lease.renew(block, life, now);
        if lease.is_out() && !std::mem::replace(&mut lease.listed, true) {
            self.list.push(line as u16);
        }
        before
    }

    /// Permits of a caller came back at the level above, also those of its block: no refusal holds any more.
    pub(crate) fn forget(&mut self, key: Key) {
        if let Some(lease) = self.find(key) {
            lease.take_block();
            lease.forget_refusal();
        }
    }

    /// Gives up a caller's block.
    pub fn take(&mut self, key: Key) -> (Block, u64) {
        self.find(key).map(Lease::take_block).unwrap_or_default()
    }

    /// Judges a caller by the plan in hand from now on.
    pub fn begin_anew(&mut self, key: Key) {
        let plan = self.plan;
        if let Some(lease) = self.find(key) {
            lease.begin_anew(plan);
        }
    }

    /// Gives up blocks that are over, or all of them, at most [`BATCH`].
    pub fn take_over(&mut self, now: Now, all: bool) -> Vec<Returned> {
        let mut returned = Vec::new();
        self.list.retain(|&line| {
            let Some(lease) = at(&mut self.pages, usize::from(line)) else { return false };
            if returned.len() < BATCH && lease.is_out() && (all || lease.is_over(now)) {
                let (block, left) = lease.take_block();
                returned.push(Returned { key: lease.key(), plan: lease.plan, block, left });
            }
            lease.listed = lease.is_out();
            lease.listed
        });
        returned
    }

    /// Whether any block is out.
    pub fn is_any_out(&self) -> bool {
        !self.list.is_empty()
    }

    /// Forgets everybody, and takes no memory until somebody is to be known again.
    pub fn clear(&mut self) {
        (self.pages, self.list) = (Vec::new(), Vec::new());
    }

    #[inline(always)]
    fn line(&self, key: Key) -> usize {
        (key.hash % self.most as u64) as usize
    }
}

/// What lies in a line, if it was ever used.
#[inline(always)]
fn at(pages: &mut [Box<[Lease]>], line: usize) -> Option<&mut Lease> {
    pages.get_mut(line / PAGE)?.get_mut(line % PAGE)
}
