//! Token bucket of a rule that settles what it reserves.
//!
//! Taken back alone, a charge loses what drained since it was made, though with many open the same tokens drain for
//! all of them. So three things are kept: the debt with all that is open at what it reserves, which decides; the debt
//! of what was used ([`super::counted`]), charged when that is known, and so never below what it is; and the permits
//! that are open. The first is never more than the other two together: what nobody used leaves no trace.
//!
//! Whenever the first is nothing a new age begins, since no charge that is open matters any more, nor one that nobody
//! ever settles.

use std::rc::Rc;

use super::debt::{self, Debt};
use super::{Algorithm, copy};
use crate::decision::Decision;
use crate::policy::Quota;
use crate::settlement::Settlement;
use crate::time::{Micros, Now};

#[derive(Debug)]
struct SettledBucket {
    /// The token bucket twice: of what is reserved or used, and of what is used.
    counted: Rc<dyn Algorithm>,
    rpu: u64,
    unit: Micros,
}

/// What is not settled yet.
#[derive(Clone, Copy)]
struct Open {
    permits: u64,
    /// When the age began that they are of, by which each is told from those before.
    age: Micros,
}

impl Open {
    fn load(words: &[u64]) -> Open {
        match *words {
            [permits, age] => Open { permits, age },
            _ => Open { permits: 0, age: 0 },
        }
    }

    fn save(self, words: &mut [u64]) {
        if let [permits, age] = words {
            (*permits, *age) = (self.permits, self.age);
        }
    }

    fn without(self, permits: u64) -> Open {
        Open { permits: self.permits.saturating_sub(permits), ..self }
    }
}

/// A token bucket that is counted twice, of a rule that settles.
pub(super) fn build(quota: &Quota, counted: Rc<dyn Algorithm>) -> Rc<dyn Algorithm> {
    Rc::new(SettledBucket { counted, rpu: quota.rpu, unit: quota.period() })
}

impl SettledBucket {
    fn parts<'s>(&self, state: &'s [u64]) -> (&'s [u64], &'s [u64]) {
        state.split_at_checked(self.counted.words()).unwrap_or_default()
    }

    fn parts_mut<'s>(&self, state: &'s mut [u64]) -> (&'s mut [u64], &'s mut [u64]) {
        state.split_at_mut_checked(self.counted.words()).unwrap_or_default()
    }

    /// Whether there is any debt. Its state may be kept for longer, since it may come to be judged by another rate.
    fn owes(&self, debts: &[u64], now: Now) -> bool {
        debts.chunks(debt::WORDS).any(|debt| Debt::load(debt).cleared(self.rpu) > now.mono)
    }

    /// Writes what is open, and of both debts, as they are at `now`, at most what they can be.
    fn close(&self, open: Open, now: Micros, new: &mut [u64]) {
        let (debts, open_words) = self.parts_mut(new);
        open.save(open_words);
        let Some((decides, used)) = debts.split_at_mut_checked(debt::WORDS) else { return };
        let debt = Debt::load(decides).drained(now, self.rpu);
        let known = Debt::load(used).drained(debt.at(), self.rpu);
        let debt = debt.at_most(known.charged(open.permits, self.unit).amount());
        debt.save(decides);
        known.at_most(debt.amount()).save(used);
    }
}

impl Algorithm for SettledBucket {
    fn words(&self) -> usize {
        self.counted.words() + 2
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        let ((debts, open), (new_debts, new_open)) = (self.parts(old), self.parts_mut(new));
        let decision = self.counted.step(debts, now, cost, new_debts);
        if decision.is_admitted() {
            let open = match self.owes(debts, now) {
                true => Open::load(open),
                false => Open { permits: 0, age: now.mono },
            };
            Open { permits: open.permits.saturating_add(cost), ..open }.save(new_open);
        }
        decision
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        Open::load(self.parts(charged).1).age
    }

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        let (debts, open) = self.parts(old);
        let open = Open::load(open);
        if receipt != open.age {
            return copy(old, new);
        }
        self.counted.refund(debts, self.counted.receipt(debts), permits, self.parts_mut(new).0);
        self.close(open.without(permits), 0, new);
    }

    fn debit(&self, old: &[u64], now: Now, permits: u64, new: &mut [u64]) {
        let ((debts, open), (new_debts, new_open)) = (self.parts(old), self.parts_mut(new));
        self.counted.debit(debts, now, permits, new_debts);
        copy(open, new_open);
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        let (debts, open) = self.parts(old);
        let open = Open::load(open);
        if settlement.receipt != open.age {
            // All that was reserved has drained, whoever used it.
            return self.debit(old, now, settlement.debt(), new);
        }
        self.counted.settle(debts, now, settlement, self.parts_mut(new).0);
        self.close(open.without(settlement.reserved), now.mono, new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn reserved(&self, state: &[u64], now: Now) -> u64 {
        let (debts, open) = self.parts(state);
        if self.owes(debts, now) { Open::load(open).permits } else { 0 }
    }

    fn lift(&self, old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        let kept = out.saturating_add(self.reserved(old, now)).min(self.most_at_once());
        let (debts, open) = self.parts_mut(new);
        // Of an age of its own, so that nothing comes back that was charged before.
        Open { permits: 0, age: now.mono }.save(open);
        super::only(&*self.counted, now, kept, debts);
        true
    }

    fn most_at_once(&self) -> u64 {
        self.counted.most_at_once()
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        self.counted.remaining(self.parts(state).0, now)
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        self.counted.expires(self.parts(state).0, now)
    }

    fn policy(&self) -> (u64, Micros) {
        self.counted.policy()
    }
}
