//! Token bucket of a rule that settles what it reserves.
//!
//! Taken back alone, a charge loses what drained since it was made, though with many open the same tokens drain for
//! all of them. So three things are kept: the debt with all that is open at what it reserves, which decides; the debt
//! of what was used ([`super::counted`]), charged when that is known, and so never below what it is; and the permits
//! that are open. The first is never more than the other two together: what nobody used leaves no trace.
//!
//! Whenever the first is nothing a new age begins, since no charge that is open matters any more, nor one that nobody
//! ever settles.
//!
//! What is settled may have been charged under another plan than the caller has had since. So the rate is kept by which it
//! was last admitted, and by that its debts drain until the next one comes.

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
    fastest: u64,
    unit: Micros,
}

/// What is not settled yet.
#[derive(Clone, Copy)]
struct Open {
    permits: u64,
    /// When the age began that they are of, by which each is told from those before.
    age: Micros,
    /// By which the caller was last admitted; zero if it never was.
    rate: u64,
}

impl Open {
    const WORDS: usize = 3;

    fn load(words: &[u64]) -> Open {
        match *words {
            [permits, age, rate] => Open { permits, age, rate },
            _ => Open { permits: 0, age: 0, rate: 0 },
        }
    }

    fn save(self, words: &mut [u64]) {
        if let [permits, age, rate] = words {
            (*permits, *age, *rate) = (self.permits, self.age, self.rate);
        }
    }

    fn without(self, permits: u64) -> Open {
        Open { permits: self.permits.saturating_sub(permits), ..self }
    }
}

/// Both debts, and what is open.
#[derive(Clone, Copy)]
struct Books {
    decides: Debt,
    used: Debt,
    open: Open,
}

/// A token bucket that is counted twice, of a rule that settles.
pub(super) fn build(quota: &Quota, counted: Rc<dyn Algorithm>) -> Rc<dyn Algorithm> {
    let (rpu, fastest, unit) = (quota.rpu, quota.fastest(), quota.period());
    Rc::new(SettledBucket { counted, rpu, fastest, unit })
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

    fn read(&self, state: &[u64]) -> Books {
        let (debts, open) = self.parts(state);
        let (decides, used) = debts.split_at_checked(debt::WORDS).unwrap_or_default();
        Books { decides: Debt::load(decides), used: Debt::load(used), open: Open::load(open) }
    }

    /// The books as they are at `now`, if nobody was admitted meanwhile.
    fn at(&self, books: Books, now: Micros) -> Books {
        let rate = if books.open.rate > 0 { books.open.rate } else { self.rpu };
        let Books { decides, used, open } = books;
        Books { decides: decides.drained(now, rate), used: used.drained(now, rate), open }
    }

    fn write(&self, books: Books, new: &mut [u64]) {
        let (debts, open) = self.parts_mut(new);
        books.open.save(open);
        let Some((decides, used)) = debts.split_at_mut_checked(debt::WORDS) else { return };
        books.decides.save(decides);
        books.used.save(used);
    }

    /// Writes the books, in which both debts are at most what they can be.
    fn close(&self, books: Books, now: Micros, new: &mut [u64]) {
        let books = self.at(books, now.max(books.decides.at()).max(books.used.at()));
        let most = books.used.charged(books.open.permits, self.unit);
        let decides = books.decides.at_most(most.amount());
        let used = books.used.at_most(decides.amount());
        self.write(Books { decides, used, ..books }, new);
    }

    /// Charges what was used of both debts, of which the first may have it already.
    fn owe(&self, books: Books, now: Now, permits: u64, used: u64) -> Books {
        let books = self.at(books, now.mono);
        let decides = books.decides.charged(permits, self.unit);
        Books { decides, used: books.used.charged(used, self.unit), ..books }
    }
}

impl Algorithm for SettledBucket {
    fn words(&self) -> usize {
        self.counted.words() + Open::WORDS
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        let ((debts, open), (new_debts, new_open)) = (self.parts(old), self.parts_mut(new));
        let decision = self.counted.step(debts, now, cost, new_debts);
        if decision.is_admitted() {
            let Open { permits, age, .. } = match self.owes(debts, now) {
                true => Open::load(open),
                false => Open { permits: 0, age: now.mono, rate: 0 },
            };
            Open { permits: permits.saturating_add(cost), age, rate: self.rpu }.save(new_open);
        }
        decision
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        Open::load(self.parts(charged).1).age
    }

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        let Books { decides, used, open } = self.read(old);
        if receipt != open.age {
            return copy(old, new);
        }
        let decides = decides.refunded(permits, self.unit);
        self.close(Books { decides, used, open: open.without(permits) }, 0, new);
    }

    fn debit(&self, old: &[u64], now: Now, permits: u64, new: &mut [u64]) {
        self.write(self.owe(self.read(old), now, permits, permits), new);
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        let books = self.read(old);
        let Settlement { receipt, since, reserved, used } = *settlement;
        if receipt != books.open.age {
            // All that was reserved has drained, whoever used it.
            return self.debit(old, now, settlement.debt(), new);
        }
        let fastest = self.fastest.max(books.open.rate);
        let decides = books.decides.returned(settlement.back(), self.unit, since, fastest);
        let books = self.owe(Books { decides, ..books }, now, settlement.debt(), used);
        self.close(Books { open: books.open.without(reserved), ..books }, now.mono, new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn charged(&self, state: &[u64], now: Now) -> u64 {
        self.at(self.read(state), now.mono).decides.in_permits(self.unit)
    }

    fn reserved(&self, state: &[u64], now: Now) -> u64 {
        self.charged(state, now).min(self.read(state).open.permits)
    }

    fn lift(&self, old: &[u64], now: Now, _out: u64, new: &mut [u64]) -> bool {
        // What is open stays charged, and known by the same receipts.
        self.close(Books { used: Debt::default(), ..self.read(old) }, now.mono, new);
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
