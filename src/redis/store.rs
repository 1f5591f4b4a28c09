//! Usage counted for the whole fleet, in Redis, which replies asynchronously.
//!
//! A request that this worker cannot decide waits for the reply of Redis. A busy caller's permits are leased in blocks, spent at once, and renewed before they are
//! spent. A refusal is remembered briefly. While Redis is unavailable, the gateway enforces its
//! share of the limit.

mod answer;
mod lift;
mod operations;
mod recall;
mod share;
mod terms;

use std::cell::RefCell;
use std::rc::Rc;

use super::handle::Handle;
use super::protocol::{Back, Charge, Question};
use super::shard::Shards;
use diana_algorithm::latest_renewal;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::leases::Leases;
use diana_store::permit::Unsettled;
use diana_store::plans::ByPlan;
use diana_store::refusal::Reason;
use diana_store::reservation::{Awaited, By};
use diana_store::stores::Stores;
use diana_store::usage::{Cannot, Inquiry, Maintained, Remaining, Usage};
use diana_store::{Account, CounterSpec, Reservation, Store};
use share::Share;
use terms::Terms;

/// The retry delay if requests are refused because Redis is unavailable.
const AWAY: Micros = SECOND;

/// A rule that all gateways count together.
pub struct RedisStore {
    /// The state of Redis, and the operations for it.
    handle: Rc<RefCell<Handle>>,
    /// The number of the rule in its limiter.
    number: usize,
    terms: Terms,
    plans: ByPlan<Terms>,
    leases: Leases,
    share: Share,
    /// The number of shards with its callers.
    parts: Shards,
    /// The maximum number of callers with a separate value in one shard.
    keys: u64,
    /// Whether permits are in-flight slots.
    is_held: bool,
}

/// The error if the Redis script does not support a rule's algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCodec;

impl RedisStore {
    /// A rule with this number, whose callers are distributed over the shards.
    ///
    /// # Errors
    /// If the Redis script does not support its algorithm.
    pub fn new(
        spec: CounterSpec,
        number: usize,
        handle: Rc<RefCell<Handle>>,
        stores: &mut Stores<'_>,
    ) -> Result<RedisStore, NoCodec> {
        let parts = spread(&spec, &handle.borrow());
        Ok(RedisStore {
            handle,
            number,
            terms: Terms::of(&spec, parts).ok_or(NoCodec)?,
            plans: ByPlan::new(&spec),
            leases: Leases::of(&spec),
            parts,
            keys: parts.share(spec.keys as u64),
            is_held: spec.algorithm.properties().is_held,
            share: Share::new(spec, stores),
        })
    }

    /// Switches to the quota of this plan.
    #[inline]
    pub fn judge_by(&mut self, plan: u32) {
        let parts = self.parts;
        if self.plans.take(plan, &mut self.terms, |spec| Terms::of(spec, parts)) {
            self.leases.plan = plan;
        }
    }

    /// A caller under the plan at hand.
    fn account(&self, key: Key) -> Account {
        Account { key, plan: self.plans.in_hand() }
    }

    /// Decides without Redis, from now on.
    fn check_alone(&mut self, reservation: &mut Reservation) {
        reservation.is_alone = true;
        let now = reservation.now;
        let (on_failure, gateways) = {
            let mut handle = self.handle.borrow_mut();
            handle.in_use = true;
            (self.terms.spec.on_failure.unwrap_or(handle.on_failure), handle.gateways)
        };
        let decision = match on_failure {
            OnFailure::Gateway => return self.share.part(gateways, now).check(reservation),
            OnFailure::Allow => Decision::NOW,
            OnFailure::Deny => Decision::retry(AWAY),
        };
        reservation.decide(decision, By::Nobody);
        reservation.reason = Reason::Unavailable;
    }
}

/// The number of shards over which the callers of a rule are spread.
pub(crate) fn spread(spec: &CounterSpec, handle: &Handle) -> Shards {
    if spec.is_compound { Shards::ONE } else { handle.parts }
}

impl Store for RedisStore {
    fn check(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, now, .. } = *reservation;
        self.judge_by(account.plan);
        match reservation.by {
            By::Reply(Awaited::Asked(question)) => return self.on_result(question, reservation),
            By::Reply(Awaited::Background(question)) => {
                return self.complete(account.key, question, now);
            }
            By::Reply(Awaited::Admitted { until, .. }) => {
                reservation.decision = Decision::Admit { wait: until.saturating_sub(now.mono) };
                return;
            }
            _ if reservation.is_alone => return self.check_alone(reservation),
            _ => {}
        }
        if cost > self.terms.most {
            return reservation.decide(Decision::NEVER, By::Known);
        }
        let is_alone = self.handle.borrow().is_alone(account.key);
        if self.recall(reservation, is_alone) {
            return;
        }
        if is_alone {
            return self.check_alone(reservation);
        }
        reservation.decide(Decision::NOW, By::Reply(Awaited::Unasked));
    }

    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision {
        let Reservation { account, cost, now, decision, .. } = *reservation;
        match reservation.by {
            By::Nobody if decision.is_admitted() => {
                reservation.is_charged = true;
                return Decision::Admit { wait: delay };
            }
            By::Nobody => return decision,
            _ if reservation.is_alone => return self.share.last().charge(reservation, delay),
            _ => self.judge_by(account.plan),
        }
        match reservation.by {
            By::Lease => {
                if self.leases.spend(account.key, cost, now).is_none() {
                    // Another request has spent it since the check.
                    return Decision::retry(1);
                }
                reservation.is_charged = true;
                self.renew_early(account.key, now);
                Decision::Admit { wait: delay }
            }
            By::Reply(Awaited::Unasked) => {
                let Reservation { is_shadow, is_tentative, .. } = *reservation;
                let charge = self.question((account.key, cost), now, is_shadow, is_tentative);
                let question = self.handle.borrow_mut().ask(Question::Rule(charge));
                reservation.by = By::Reply(Awaited::Asked(question));
                Decision::retry(1)
            }
            _ => decision,
        }
    }

    fn cancel(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, receipt, .. } = *reservation;
        match reservation.by {
            _ if !reservation.is_charged => return,
            By::Nobody => {}
            _ if reservation.is_alone => return self.share.last().cancel(reservation),
            By::Lease => self.leases.unspend(account.key, cost),
            By::Reply(Awaited::Admitted { term, .. }) => {
                self.judge_by(account.plan);
                self.give_back(account.key, (receipt, term), cost);
            }
            _ => {}
        }
        reservation.is_charged = false;
    }

    fn settle(&mut self, charge: &Unsettled, now: Now) -> bool {
        if charge.is_alone {
            return self.share.last().settle(charge, now);
        }
        self.judge_by(charge.plan);
        let (key, settlement) = (charge.key, charge.settlement());
        let Settlement { receipt, used, .. } = settlement;
        if self.is_held {
            self.free(key, receipt);
            return true;
        }
        self.share.note(charge.account(), used, now);
        let counted = self.terms.spec.keeps_used.then_some(used);
        if settlement.is_even() && counted.unwrap_or(0) == 0 {
            return true;
        }
        let back = match settlement.debt() {
            0 => Back::Cost { receipt, term: 0, permits: settlement.back() },
            permits => Back::Debt { receipt, permits },
        };
        let charge = Charge { back, counted, ..self.nothing(key) };
        let mut handle = self.handle.borrow_mut();
        let part = handle.parts.of(key);
        handle.ledgers.add(part, charge);
        true
    }

    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        let Reservation { account, cost, now, decision, left, .. } = *reservation;
        let is_nobody = matches!(reservation.by, By::Nobody);
        if reservation.is_alone && !is_nobody {
            return self.share.last().remaining(reservation);
        }
        self.judge_by(account.plan);
        let permits = match reservation.by {
            By::Lease => self.left(account.key),
            By::Nobody => None,
            // A request that never fits is refused without a call to Redis. A limit of zero has no
            // permits left.
            _ if decision == Decision::NEVER => (self.terms.most == 0).then_some(0),
            _ => left,
        }?;
        let renewal = match decision {
            Decision::Admit { wait } => latest_renewal(&*self.terms.spec.algorithm, cost, now)
                .map(|renewal| renewal.saturating_add(wait)),
            Decision::Refuse { .. } => None,
        };
        Some(Remaining { permits, renewal })
    }

    fn inquire(&mut self, inquiry: &mut Inquiry, _now: Now) -> Option<Result<Usage, Cannot>> {
        let Inquiry { account, order, question } = *inquiry;
        self.judge_by(account.plan);
        match question {
            Some(question) => Some(self.usage(account.key, order, question)),
            None => match self.ask_usage(account.key, order) {
                Ok(question) => {
                    inquiry.question = Some(question);
                    None
                }
                Err(cannot) => Some(Err(cannot)),
            },
        }
    }

    fn maintain(&mut self, now: Now) -> Maintained {
        self.hand_in_blocks(now, false);
        let mut done = self.share.last().maintain(now);
        done.is_busy |= self.leases.is_any_out();
        if self.is_held {
            let mut handle = self.handle.borrow_mut();
            done.is_busy |= handle.ledgers.beat(&self.nothing(Key::ALL), now.mono);
        }
        done
    }

    fn close(&mut self, now: Now) -> i64 {
        while self.leases.is_any_out() {
            self.hand_in_blocks(now, true);
        }
        self.leases.clear();
        self.share.last().close(now)
    }
}
