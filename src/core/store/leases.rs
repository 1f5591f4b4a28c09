//! The callers that this worker knows something about.

use super::counter_spec::CounterSpec;
use super::lease::{Block, Lease};
use crate::key::Key;
use crate::time::{Micros, Now};

/// Callers of one rule that are known at a time.
pub(super) const LINES: usize = 4096;

/// Callers of all rules of a configuration that are known at a time, unless there are more rules than pages.
const ALL_LINES: usize = 1 << 20;

/// Lines that take memory at once. What each configuration takes anew and gives back leaves no large holes.
const PAGE: usize = 64;

/// Blocks given back at once.
const BATCH: usize = 1024;

/// A caller has one line where its lease can be.
#[derive(Debug)]
pub(crate) struct Leases {
    pages: Vec<Box<[Lease]>>,
    most: usize,
    /// Lines in which a block may lie.
    list: Vec<u16>,
    /// The plan by which something is found out about callers.
    pub(crate) plan: u32,
}

impl Leases {
    /// Room for some of a rule's callers.
    pub(crate) fn of(spec: &CounterSpec) -> Leases {
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
    pub(crate) fn find(&mut self, key: Key) -> Option<&mut Lease> {
        let line = self.line(key);
        at(&mut self.pages, line).filter(|lease| lease.key() == key)
    }

    /// The line of a caller, made its unless another's permits lie there.
    pub(crate) fn claim(&mut self, key: Key) -> Option<&mut Lease> {
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
            *lease = Lease::of(key);
            (lease.listed, lease.plan) = (listed, self.plan);
        }
        Some(lease)
    }

    /// A caller's new block, if it has a line.
    pub(crate) fn renew(&mut self, key: Key, block: Block, life: Micros, now: Now) {
        self.find(key).into_iter().for_each(|lease| lease.renew(block, life, now));
        self.list(key);
    }

    /// A block for a caller that it may spend after the one in hand until `ends`, if it has a line.
    pub(crate) fn reserve(&mut self, key: Key, block: Block, begins: Micros, ends: Now) {
        self.find(key).into_iter().for_each(|lease| lease.reserve(block, begins, ends));
        self.list(key);
    }

    /// Sees to it that what a caller has out is not forgotten.
    fn list(&mut self, key: Key) {
        let line = self.line(key);
        if let Some(lease) = self.find(key)
            && lease.is_out()
            && !lease.listed
        {
            lease.listed = true;
            self.list.push(line as u16);
        }
    }

    /// The caller's block is no longer out.
    pub(crate) fn forget(&mut self, key: Key) {
        self.find(key).into_iter().for_each(Lease::forget);
    }

    /// Callers some of whose blocks should be given back, at most [`BATCH`] of them, and whether any
    /// block is out.
    pub(crate) fn idle(&mut self, now: Now, all: bool) -> (Vec<Key>, bool) {
        let mut idle = Vec::new();
        self.list.retain(|&line| {
            let Some(lease) = at(&mut self.pages, usize::from(line)) else { return false };
            lease.listed = lease.is_out();
            let is_idle = all || lease.is_idle(now) || lease.is_next_over(now);
            if idle.len() < BATCH && lease.is_out() && is_idle {
                idle.push(lease.key());
            }
            lease.listed
        });
        (idle, !self.list.is_empty())
    }

    /// Forgets everybody, and takes no memory until somebody is to be known again.
    pub(crate) fn clear(&mut self) {
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
