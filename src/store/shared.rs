//! Usage counted for the whole gateway: callers in a fixed number of slots of shared data, updated
//! by compare-and-swap, so that never one permit too many is given whatever the number of workers.
//!
//! A hot caller's permits are taken in blocks and spent without asking. A block is charged when it
//! is taken, so it can only make the gateway admit less; who is refused only because others hold what
//! is missing is told so, and waits for it.

mod back;
mod lent;
pub(super) mod names;
mod prepare;
pub(super) mod slot;
mod slots;
pub mod traffic;
mod view;

use std::rc::Rc;

use super::lease::{Lease, Refusal};
use super::leases::Leases;
use super::{Judged, Meter, Store};
use crate::decision::{Decision, Retry};
use crate::key::Key;
use crate::policy::Memory;
use crate::port::SharedData;
use crate::time::{Micros, Now};
use names::Names;
pub(super) use prepare::gather;
use traffic::{Traffic, one_more};
use view::{Loan, View};

/// The memory of a rule: leases in each worker, slots in the host.
pub(super) fn memory(words: usize, keys: usize) -> Memory {
    let shared = Names::most(keys).map(|(slots, callers)| slots * slot::bytes(words, callers));
    Memory { worker: Leases::bytes(keys), shared: shared.iter().sum() }
}

/// A rule that all workers count together.
pub struct Shared {
    meter: Meter,
    traffic: Rc<Traffic>,
    leases: Leases,
    view: View,
    /// The request in hand.
    key: Key,
    now: Now,
    source: Source,
    /// Why it is refused, if it is.
    refusal: Refusal,
    /// Whether the rule never admits anybody.
    never: bool,
    /// Ticks for which permits gather for a caller that comes often and was refused.
    gather: Micros,
    /// The state after the charge.
    after: Box<[u64]>,
}

/// What decides about the request in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A block that this worker holds.
    Lease,
    /// A refusal that still lasts.
    Refusal,
    /// The gateway, which was asked.
    View,
    /// The gateway, which was asked and charged.
    Charged,
}

impl Shared {
    /// A rule of a namespace.
    pub fn new(
        meter: Meter,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
    ) -> Shared {
        Shared {
            leases: Leases::new(meter.keys),
            view: View::new(&meter, namespace, data, traffic.clone()),
            traffic,
            key: Key::ALL,
            now: Now::default(),
            source: Source::Refusal,
            refusal: Refusal::default(),
            never: meter.cost > meter.algorithm.most_at_once(),
            gather: gather(&meter),
            after: vec![0; meter.algorithm.words()].into(),
            meter,
        }
    }

    /// Charges what somebody else let through, unless that would never be let through here.
    pub(super) fn note(&mut self, key: Key, permits: u64, now: Now) {
        self.begin(key, now);
        while self.view.slots.may_try() {
            self.look();
            if !self.step(permits).is_admitted() || self.view.write(&self.after, 0) {
                return;
            }
        }
    }

    fn begin(&mut self, key: Key, now: Now) {
        (self.key, self.now) = (key, now);
        self.view.slots.begin();
    }

    /// Asks the gateway about the caller, as if this worker had given back what it holds for it.
    fn look(&mut self) {
        self.view.look(self.key, self.now);
        if let Some(lease) = self.leases.find(self.key) {
            self.view.give_back(lease);
        }
    }

    /// Decides without asking the gateway, if that can be done.
    fn recall(&mut self) -> Option<Decision> {
        let (cost, now) = (self.meter.cost, self.now);
        let lease = self.leases.find(self.key)?;
        lease.demand.see(now);
        if lease.has(cost, now) {
            self.source = Source::Lease;
            return Some(Decision::NOW);
        }
        let pause = || {
            let (rest, waits) = lease.pause(self.gather, now)?;
            Some(Refusal { retry: rest, loan: if waits { rest } else { 0 }, left: 0 })
        };
        self.refusal = lease.refusal.at(now).or_else(pause)?;
        self.source = Source::Refusal;
        Some(Decision::retry(self.refusal.retry))
    }

    /// Finds out why the gateway refuses for so long.
    fn explain(&mut self, retry: Micros) {
        let now = self.now;
        let crowded = self.leases.find(self.key).is_some_and(|lease| lease.is_crowded(now));
        let (retry, loan) = match self.view.loan(self.meter.cost, retry) {
            Loan::Out(ticks) => (retry, ticks),
            Loan::Gathers(ticks) => (retry, if crowded { 0 } else { ticks }),
            Loan::None(retry) => (retry, 0),
        };
        self.refusal = Refusal { retry, loan, left: self.view.left() };
    }
}

impl Store for Shared {
    fn judge(&mut self, key: Key, now: Now) -> Judged {
        self.begin(key, now);
        self.refusal = Refusal::default();
        if self.never {
            self.source = Source::Refusal;
            return Judged::of(Decision::NEVER);
        }
        if let Some(decision) = self.recall() {
            return Judged::of(decision);
        }
        self.source = Source::View;
        self.look();
        let mut decision = self.step(self.meter.cost);
        if let Decision::Refuse { retry: Retry::After(ticks) } = decision {
            self.explain(ticks);
            decision = Decision::retry(self.refusal.retry);
            let (refusal, beside) = (self.refusal, self.meter.beside);
            match self.leases.claim(key) {
                Some(lease) if beside => lease.refuse_shortly(refusal, now),
                Some(lease) => lease.refuse(refusal, now, now),
                None => {}
            }
        }
        Judged { overflow: self.view.is_overflow(), ..Judged::of(decision) }
    }

    fn loan(&self) -> Micros {
        self.refusal.loan
    }

    fn look_again(&mut self, key: Key) {
        self.leases.find(key).into_iter().for_each(Lease::look_again);
    }

    fn crowd(&mut self, key: Key, now: Now) {
        self.leases.find(key).into_iter().for_each(|lease| lease.crowd(now));
    }

    /// Nobody whose refusal is remembered: whoever is judged in vain is judged again, and would count
    /// twice.
    fn pass(&mut self, key: Key, now: Now) -> bool {
        self.leases.find(key).is_none_or(|lease| lease.refusal.at(now).is_none())
            && self.judge(key, now) == Judged::of(Decision::NOW)
            && self.charge(0) == Decision::NOW
    }

    fn can_hold(&mut self, delay: Micros) -> Decision {
        match self.source {
            Source::View => self.prepare(delay).err().unwrap_or(Decision::NOW),
            _ => Decision::NOW,
        }
    }

    fn charge(&mut self, delay: Micros) -> Decision {
        if self.source == Source::Lease {
            let (cost, now) = (self.meter.cost, self.now);
            self.leases.find(self.key).into_iter().for_each(|lease| lease.spend(cost, now));
            return Decision::NOW;
        }
        while self.view.slots.may_try() {
            let block = match self.prepare(delay) {
                Ok(block) => block,
                Err(decision) => {
                    if let Decision::Refuse { retry: Retry::After(ticks) } = decision {
                        self.explain(ticks);
                        return Decision::retry(self.refusal.retry);
                    }
                    return decision;
                }
            };
            if self.view.write(&self.after, block) {
                self.source = Source::Charged;
                self.remember(block);
                return Decision::Admit { wait: delay };
            }
            self.look();
        }
        one_more(&self.traffic.exhausted);
        Decision::retry(1)
    }

    fn undo(&mut self) {
        match self.source {
            Source::Refusal | Source::View => {}
            Source::Lease => {
                let cost = self.meter.cost;
                self.leases.find(self.key).into_iter().for_each(|lease| lease.unspend(cost));
            }
            Source::Charged => self.undo_charge(),
        }
    }

    fn remaining(&mut self) -> u64 {
        match self.source {
            Source::Refusal => self.refusal.left,
            Source::Lease => {
                self.look();
                self.view.left()
            }
            Source::View => self.view.left(),
            Source::Charged => self.view.left_of(&self.after, self.leases.find(self.key)),
        }
    }

    fn place(&self) -> u64 {
        self.meter.algorithm.receipt(&self.after)
    }

    fn leave(&mut self, key: Key, place: u64, now: Now) {
        self.begin(key, now);
        // A place comes back by its number, whenever it was taken.
        self.take_back(place, 0);
    }

    fn foresee(&mut self, key: Key, permits: u64) {
        self.leases.claim(key).into_iter().for_each(|lease| lease.demand.foresee(permits));
    }

    fn tidy(&mut self, now: Now) -> bool {
        self.hand_in_blocks(now, false)
    }

    fn change_in_keys(&mut self) -> i64 {
        0
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.hand_in_blocks(now, true) {}
        self.leases.clear();
        0
    }
}
