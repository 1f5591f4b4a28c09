//! The callers that this worker remembers, with their leases and refusals.

use super::counter_spec::CounterSpec;
use super::lease::{Block, Lease, LeaseDecision, Lessor, Life, Pace, Received};
use super::reservation::{CheckOutcome, Memo, Reservation};
use diana_policy::key::Key;
use diana_policy::time::Now;

/// Remembered callers per rule.
pub(super) const LINES: usize = 4096;

/// Remembered callers of all rules of a configuration, unless there are more rules than pages.
const ALL_LINES: usize = 1 << 20;

/// Lines allocated at once. Small pages leave no large holes when configurations come and go.
const PAGE: usize = 64;

/// Blocks returned at once.
const BATCH: usize = 1024;

/// A block to be returned to the authority.
pub struct Returned {
    /// The caller.
    pub key: Key,
    /// The plan under which it was leased.
    pub plan: u64,
    /// The block.
    pub block: Block,
    /// Its unspent permits.
    pub left: u64,
}

/// A direct-mapped table: each caller has one possible line.
#[derive(Debug)]
pub struct Leases {
    pages: Vec<Box<[Lease]>>,
    most: usize,
    /// Lines that may contain a block.
    list: Vec<u16>,
    /// The current plan.
    pub plan: u64,
}

impl Leases {
    /// A table for a rule.
    pub fn of(spec: &CounterSpec) -> Leases {
        let plan = spec.plans.as_ref().map_or(0, |plans| plans.first());
        Leases { plan, ..Leases::new(spec.keys.min(spec.lines)) }
    }

    fn new(callers: usize) -> Leases {
        Leases { pages: Vec::new(), most: callers.clamp(1, LINES), list: Vec::new(), plan: 0 }
    }

    /// Lines per rule, for this number of rules. Rules share memory, so that many rules leave
    /// enough for callers. A caller without a line is counted as exactly, but costs more.
    pub(crate) fn lines(rules: usize) -> usize {
        (ALL_LINES / rules.max(1)).clamp(PAGE, LINES)
    }

    /// Memory in bytes for `callers` in `lines`.
    pub(crate) fn bytes(callers: usize, lines: usize) -> u64 {
        // One word per line: its part of the page's pointer, and its number in the list.
        let line = size_of::<Lease>() + size_of::<u64>();
        (callers.min(lines).clamp(1, LINES) * line) as u64
    }

    /// The line of a caller, unless another caller uses it.
    pub fn find(&mut self, key: Key) -> Option<&mut Lease> {
        let line = self.line(key);
        at(&mut self.pages, line).filter(|lease| lease.key() == key)
    }

    /// The line of a caller, taken over unless it contains another caller's permits.
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
            if lease.has_block() {
                return None;
            }
            let is_listed = lease.is_listed;
            *lease = Lease::of(key, self.plan);
            lease.is_listed = is_listed;
        }
        Some(lease)
    }

    /// Decides a request, if this worker can: then sets its outcome. Also returns the block of a
    /// caller that has changed its plan, for return to the authority.
    pub fn recall(
        &mut self,
        reservation: &mut Reservation,
        pace: Pace,
    ) -> (LeaseDecision, Option<Returned>) {
        let (key, plan) = (reservation.account.key, self.plan);
        let Some(lease) = self.find(key) else { return (LeaseDecision::Undecided, None) };
        let former = (lease.plan != plan).then(|| {
            let (before, (block, left)) = (lease.plan, lease.take_block());
            lease.change_plan(plan);
            Returned { key, plan: before, block, left }
        });
        let decision = lease.decide(reservation.cost, reservation.now, pace);
        match decision {
            LeaseDecision::Leased => {
                (reservation.outcome, reservation.memo) = (CheckOutcome::NOW, Memo::Lease);
            }
            LeaseDecision::Refused(refused) => reservation.outcome = CheckOutcome::Refused(refused),
            LeaseDecision::Undecided => {}
        }
        (decision, former)
    }

    /// Stores a part of the block of its gateway, for a caller with a line. The lease of the gateway has
    /// the `rest`.
    pub fn take_part(
        &mut self,
        key: Key,
        (part, rest): (Block, &Lease),
        cost: u64,
        now: Now,
        pace: Pace,
    ) {
        let line = self.line(key);
        if let Some(lease) = self.find(key) {
            lease.take_part(part, rest, cost, now, pace);
            self.list(line);
        }
    }

    /// Decides a request by the caller's block, if that suffices. Returns true if it does.
    pub fn use_part(&mut self, reservation: &mut Reservation) -> bool {
        let Reservation { account, cost, now, .. } = *reservation;
        let has = self.find(account.key).is_some_and(|lease| lease.has(cost, now));
        if has {
            (reservation.outcome, reservation.memo) = (CheckOutcome::NOW, Memo::Lease);
        }
        has
    }

    /// Stores the authority's reply to a question. Returns a block and its unspent permits, for
    /// return to the authority: the previous one, or the new one if the caller has no line.
    pub fn receive(&mut self, key: Key, received: Received<'_>, lessor: Lessor) -> (Block, u64) {
        let line = self.line(key);
        let reply = received.reply;
        let Some(lease) = self.claim(key) else { return (reply.leased(), reply.block) };
        if let Some(retry) = reply.retry {
            lease.on_refusal(received, retry, lessor);
            return Default::default();
        }
        let before = lease.on_admission(received, lessor);
        self.list(line);
        before
    }

    /// Spends permits of a caller's lease. Returns the receipt of its block, or `None` if too few
    /// are left.
    pub fn spend(&mut self, key: Key, cost: u64, now: Now) -> Option<u64> {
        let lease = self.find(key).filter(|lease| lease.has(cost, now))?;
        lease.spend(cost);
        Some(lease.block().0.receipt)
    }

    /// Returns permits of the latest spend.
    pub fn unspend(&mut self, key: Key, cost: u64) {
        if let Some(lease) = self.find(key) {
            lease.unspend(cost);
        }
    }

    /// Stores a new block of a caller with a line, to be spent within its `life` from `since` on. The
    /// previous block is returned already.
    pub(crate) fn renew(&mut self, key: Key, block: Block, life: Life, since: Now) {
        let line = self.line(key);
        if let Some(lease) = self.find(key) {
            lease.renew(block, life, since);
            self.list(line);
        }
    }

    /// Lists a line if it contains a block.
    fn list(&mut self, line: usize) {
        if let Some(lease) = at(&mut self.pages, line)
            && lease.has_block()
            && !std::mem::replace(&mut lease.is_listed, true)
        {
            self.list.push(line as u16);
        }
    }

    /// Removes a caller's block and its remembered refusal, after the authority got back the
    /// permits of the block.
    pub(crate) fn forget(&mut self, key: Key) {
        if let Some(lease) = self.find(key) {
            lease.take_block();
            lease.forget_refusal();
        }
    }

    /// Removes a caller's block.
    pub fn take(&mut self, key: Key) -> (Block, u64) {
        self.find(key).map(Lease::take_block).unwrap_or_default()
    }

    /// Removes blocks that have ended, or all of them, at most `BATCH`.
    pub fn remove_ended(&mut self, now: Now, all: bool) -> Vec<Returned> {
        let mut returned = Vec::new();
        self.list.retain(|&line| {
            let Some(lease) = at(&mut self.pages, usize::from(line)) else { return false };
            if returned.len() < BATCH && lease.has_block() && (all || lease.has_ended(now)) {
                let (block, left) = lease.take_block();
                returned.push(Returned { key: lease.key(), plan: lease.plan, block, left });
            }
            lease.is_listed = lease.has_block();
            lease.is_listed
        });
        returned
    }

    /// Returns true if a line may contain a block.
    pub fn has_blocks(&self) -> bool {
        !self.list.is_empty()
    }

    /// Forgets all callers and frees the memory.
    pub fn clear(&mut self) {
        (self.pages, self.list) = (Vec::new(), Vec::new());
    }

    #[inline(always)]
    fn line(&self, key: Key) -> usize {
        (key.hash % self.most as u64) as usize
    }
}

/// The content of a line, if its page was ever used.
#[inline(always)]
fn at(pages: &mut [Box<[Lease]>], line: usize) -> Option<&mut Lease> {
    pages.get_mut(line / PAGE)?.get_mut(line % PAGE)
}
