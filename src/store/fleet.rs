//! Usage counted for the whole fleet, in Redis, which answers later.
//!
//! What is not known here is asked: the request waits for the answer, which the engine hands in. A hot
//! caller's permits are leased in blocks and spent at once, and more are asked for before they are
//! used up; what Redis refused is remembered. A refusal is final only for permits that were used: where
//! others hold them, or more are on their way to this worker, the request waits. While Redis cannot be
//! relied upon the gateway goes by its part of the limit.

mod answer;
mod errand;
mod recall;
mod share;

use std::rc::Rc;

use super::lease::{Lease, Refusal};
use super::leases::Leases;
use super::shared::gather;
use super::{Judged, Meter, Store, Stores};
use crate::algorithm::{Can, Codec, Leasing};
use crate::decision::Decision;
use crate::fleet::link::Link;
use crate::fleet::script::Numbers;
use crate::key::Key;
use crate::policy::Quota;
use crate::policy::redis::OnFailure;
use crate::time::{Micros, Now, SECOND};
use share::Share;

/// How long a caller is told to wait where requests are refused because Redis is away.
const AWAY: Micros = SECOND;

/// A rule that all gateways count together.
pub struct Fleet {
    link: Rc<Link>,
    /// This store's number among those of the configuration.
    number: usize,
    meter: Meter,
    numbers: Numbers,
    leases: Leases,
    share: Share,
    /// Ticks for which permits gather for a caller that comes often and was refused.
    gather: Micros,
    /// How long before the end of a block, or of a refusal, the next block is asked for.
    ahead: Micros,
    /// How long a caller is told to wait that is refused while more is asked for.
    patience: Micros,
    /// Whether the rule can hold requests.
    holds: bool,
    /// Whether permits are leased.
    lends: bool,
    /// Whether the rule never admits anybody.
    never: bool,
    /// The request in hand.
    key: Key,
    now: Now,
    source: Source,
    /// Why it is refused, if that is known here.
    refusal: Refusal,
}

/// What decides about the request in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A block that this worker holds.
    Lease,
    /// A refusal that still lasts, or the configuration.
    Fixed,
    /// Redis, which has to be asked.
    Redis,
    /// The gateway's part.
    Share,
    /// Nobody, while Redis is away and everything is admitted.
    Nobody,
}

impl Fleet {
    /// A rule with this number, which the script in Redis counts by `numbers`.
    pub fn new(
        meter: Meter,
        numbers: Numbers,
        number: usize,
        link: Rc<Link>,
        stores: &mut Stores<'_>,
    ) -> Fleet {
        let Can { holds, leasing, .. } = meter.can();
        let codec = meter.entry.codec(&meter.quota);
        let ticks = |of: fn(&Codec) -> fn(&Quota) -> Micros| {
            codec.map_or(0, |codec| of(codec)(&meter.quota))
        };
        Fleet {
            link,
            number,
            numbers,
            leases: Leases::new(meter.keys),
            share: Share::new(meter.clone(), stores),
            gather: gather(&meter),
            ahead: ticks(|codec| codec.ahead),
            patience: ticks(|codec| codec.patience).max(gather(&meter)),
            holds,
            lends: leasing != Leasing::Never && meter.daily.is_none(),
            never: meter.cost > meter.algorithm.most_at_once(),
            key: Key::ALL,
            now: Now::default(),
            source: Source::Fixed,
            refusal: Refusal::default(),
            meter,
        }
    }

    /// Whether a request may have to wait for its turn.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Decides without Redis.
    fn judge_alone(&mut self) -> Judged {
        self.link.in_use.set(true);
        match self.link.on_failure {
            OnFailure::Gateway => {
                self.source = Source::Share;
                let gateways = self.link.gateways.get();
                self.share.part(gateways, self.now).judge(self.key, self.now)
            }
            OnFailure::Allow => {
                self.source = Source::Nobody;
                Judged::of(Decision::NOW)
            }
            OnFailure::Deny => Judged::of(Decision::retry(AWAY)),
        }
    }
}

impl Store for Fleet {
    fn judge(&mut self, key: Key, now: Now) -> Judged {
        (self.key, self.now, self.source) = (key, now, Source::Fixed);
        self.refusal = Refusal::default();
        if self.never {
            return Judged::of(Decision::NEVER);
        }
        let alone = self.link.alone.get();
        if let Some(decision) = self.recall(alone) {
            return Judged::of(decision);
        }
        if alone {
            return self.judge_alone();
        }
        self.source = Source::Redis;
        Judged { ask: true, ..Judged::of(Decision::NOW) }
    }

    fn loan(&self) -> Micros {
        match self.source {
            Source::Share => self.share.last_loan(),
            _ => self.refusal.loan,
        }
    }

    fn look_again(&mut self, key: Key) {
        self.leases.find(key).into_iter().for_each(Lease::look_again);
    }

    fn wait(&mut self, key: Key, requests: usize) {
        let lease = self.leases.find(key);
        lease.into_iter().for_each(|lease| lease.waiting = requests as u64);
    }

    fn crowd(&mut self, key: Key, now: Now) {
        self.leases.find(key).into_iter().for_each(|lease| lease.crowd(now));
    }

    /// Only out of a lease: whoever is judged in vain is judged again, and would count twice.
    fn pass(&mut self, key: Key, now: Now) -> bool {
        let cost = self.meter.cost;
        self.leases.find(key).is_some_and(|lease| lease.has(cost, now))
            && self.judge(key, now) == Judged::of(Decision::NOW)
            && self.charge(0) == Decision::NOW
    }

    fn charge(&mut self, delay: Micros) -> Decision {
        match self.source {
            Source::Lease => {
                let (cost, now) = (self.meter.cost, self.now);
                let Some(lease) = self.leases.find(self.key) else { return Decision::retry(1) };
                lease.spend(cost, now);
                if lease.runs_low() || lease.ends_soon(self.ahead, now) {
                    self.ask_for_more();
                }
                Decision::Admit { wait: delay }
            }
            Source::Share => self.share.last().charge(delay),
            Source::Fixed | Source::Nobody => Decision::Admit { wait: delay },
            // It is charged by its answer.
            Source::Redis => Decision::retry(1),
        }
    }

    fn can_hold(&mut self, delay: Micros) -> Decision {
        match self.source {
            Source::Share => self.share.last().can_hold(delay),
            _ => Decision::NOW,
        }
    }

    fn undo(&mut self) {
        match self.source {
            Source::Lease => {
                let cost = self.meter.cost;
                self.leases.find(self.key).into_iter().for_each(|lease| lease.unspend(cost));
            }
            Source::Share => self.share.last().undo(),
            Source::Fixed | Source::Redis | Source::Nobody => {}
        }
    }

    fn remaining(&mut self) -> u64 {
        match self.source {
            Source::Lease => self.left(self.key).unwrap_or(0),
            Source::Share => self.share.last().remaining(),
            Source::Fixed => self.refusal.left,
            Source::Redis | Source::Nobody => 0,
        }
    }

    fn counts(&self) -> bool {
        self.source != Source::Nobody
    }

    fn place(&self) -> u64 {
        self.share.last_place()
    }

    fn leave(&mut self, key: Key, place: u64, now: Now) {
        if self.link.alone.get() {
            self.share.last().leave(key, place, now);
        } else {
            self.give_back(key, place, 0);
        }
    }

    fn foresee(&mut self, key: Key, permits: u64) {
        self.leases.claim(key).into_iter().for_each(|lease| lease.demand.foresee(permits));
    }

    fn tidy(&mut self, now: Now) -> bool {
        self.hand_in_blocks(now, false) | self.share.last().tidy(now)
    }

    fn change_in_keys(&mut self) -> i64 {
        self.share.last().change_in_keys()
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.hand_in_blocks(now, true) {}
        self.leases.clear();
        self.share.last().close(now)
    }

    fn fleet(&mut self) -> Option<&mut Fleet> {
        Some(self)
    }
}
