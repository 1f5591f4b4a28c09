//! The authority of the fleet, and the requests that wait for it.
//!
//! The authority charges all of its rules or none before it replies. Then the other rules are
//! checked again, and charged. If one of them refuses, the next batch returns the permits to the
//! authority. So a charge at the authority may exist for a while without an admitted request, but
//! no request is admitted without its charge.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;

use crate::check::{Check, InProgress};
use crate::order::PendingOrder;
use crate::pending::{Pending, Waiting};
use crate::rule::{ChargePhase, CompiledRule};
use crate::rules::Rules;
use crate::verdict::Verdict;
use diana_policy::time::Micros;
use diana_request::identity::caller::Callers;
use diana_store::backend::{Backend, Receiver};
use diana_store::question::Question;
use diana_store::replies::Replies;

/// The authority outside of the gateway, and what waits for its replies.
pub(crate) struct Fleet {
    pub(crate) backend: Option<Box<dyn Backend>>,
    /// Requests and orders that wait for replies, or have them and were not resumed yet.
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// The numbers of the requests and orders that have their replies, in order.
    pub(crate) ready: VecDeque<u64>,
    /// The number of the latest request or order.
    last: u64,
    /// Whether rules of scope `global` decide about requests.
    pub(crate) is_global: bool,
}

impl Fleet {
    pub(crate) fn new(backend: Option<Box<dyn Backend>>, is_global: bool) -> Fleet {
        let (pending, ready) = (BTreeMap::new(), VecDeque::new());
        Fleet { backend, pending, ready, last: 0, is_global }
    }

    /// Returns true if all shards of the authority are available.
    pub(crate) fn is_connected(&self) -> bool {
        self.backend.as_ref().is_some_and(|backend| backend.unavailable_shards() == 0)
    }

    /// Prepares for a request or an order under rules of scope `global`. Probes the authority from
    /// now on if a shard is unavailable, or for an order, since no request may have needed it yet.
    /// Callers that the fleet counts are hashed with its secret, which this or another worker may
    /// have learned since.
    #[inline]
    pub(crate) fn prepare(&mut self, callers: &mut Callers, is_order: bool) {
        if (self.is_global || is_order)
            && let Some(backend) = &mut self.backend
        {
            if is_order || backend.unavailable_shards() > 0 {
                backend.probe();
            }
            callers.reseed(backend.seed());
        }
    }

    /// Asks the authority about a request, which other rules hold for `delay`.
    #[inline(never)]
    pub(crate) fn send_questions(
        &mut self,
        progress: &mut InProgress,
        delay: Micros,
        rules: &mut Rules,
    ) -> Verdict {
        let Some(backend) = &self.backend else { return Verdict::pass() };
        let round = Round::of(&progress.checks, &rules.list, &**backend);
        let is_first = progress.waiter.id == 0;
        if is_first {
            progress.waiter.id = self.number();
        }
        if is_first || round.is_second {
            // The second round may take as long as the first, so the time limit starts again.
            progress.waiter.since = progress.now.mono;
        }
        let (id, since) = (progress.waiter.id, progress.waiter.since);
        let mut questions = Vec::new();
        for check in progress.checks.iter_mut().filter(|check| check.reservation.is_pending()) {
            if let Some(rule) = rules.list.get_mut(check.rule)
                && !round.waits(rule)
            {
                questions.extend(check.ask(rule, round.is_tentative));
            }
        }
        let waiting = Waiting::Request(take(progress));
        self.wait(id, Pending { is_cancelled: false, waiting }, questions, (delay, since));
        Verdict::Pending { id }
    }

    /// Sends the questions of an order, and remembers it. Returns its number.
    pub(crate) fn send_order(
        &mut self,
        order: PendingOrder,
        questions: Vec<Question>,
        now: Micros,
    ) -> u64 {
        let (id, waiting) = (self.number(), Waiting::Order(order));
        self.wait(id, Pending { is_cancelled: false, waiting }, questions, (0, now));
        id
    }

    /// Sends questions, and remembers the request that waits for the replies. It has waited since `since`, and
    /// other rules hold it for `delay`.
    pub(crate) fn wait(
        &mut self,
        id: u64,
        pending: Pending,
        questions: Vec<Question>,
        (delay, since): (Micros, Micros),
    ) {
        self.pending.insert(id, pending);
        if let Some(backend) = &mut self.backend {
            backend.send(id, questions, delay, since);
        }
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn next_complete(&mut self) -> Option<(Receiver, Replies)> {
        self.backend.as_mut()?.next_complete()
    }

    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        let Some(pending) = self.pending.get_mut(&id) else { return false };
        !std::mem::replace(&mut pending.is_cancelled, true)
    }

    /// Marks a request or order with all of its replies as ready. Returns a request if its client
    /// has left.
    pub(crate) fn on_answered(&mut self, id: u64, replies: Replies) -> Option<InProgress> {
        let mut pending = self.pending.remove(&id)?;
        match &mut pending.waiting {
            Waiting::Request(progress) => progress.replies = replies,
            Waiting::Order(order) => order.replies = replies,
        }
        match pending {
            Pending { is_cancelled: true, waiting: Waiting::Request(progress) } => Some(progress),
            pending => {
                self.pending.insert(id, pending);
                self.ready.push_back(id);
                None
            }
        }
    }
}

/// A round of questions about a request with rules in several shards.
///
/// Each shard charges its own rules. If another shard refuses, the charges are returned. Until then
/// they are tentative: they count as outstanding, and cause no final refusal. The first round makes
/// the charges that can be returned. The second round makes the others: quotas, and queues, of
/// which only the last position can be returned.
struct Round {
    /// Whether another store may still refuse the request, which returns the charges.
    is_tentative: bool,
    /// Whether it is the second round.
    is_second: bool,
    /// Whether charges that cannot be returned wait for the second round.
    holds_back: bool,
}

impl Round {
    fn of(checks: &[Check], rules: &[CompiledRule], backend: &dyn Backend) -> Round {
        let pending = || checks.iter().filter(|check| check.reservation.is_pending());
        let mut shards = pending().map(|check| backend.shard(check.key()));
        let first = shards.next();
        let is_spread = shards.any(|shard| Some(shard) != first);
        let is_revocable = |check: &Check| !rules.get(check.rule).is_some_and(is_final);
        let has_reply =
            |check: &Check| check.reservation.is_granted() || check.reservation.is_degraded();
        Round {
            // Rules that are counted elsewhere are checked again when the replies come.
            is_tentative: is_spread || pending().count() < checks.len(),
            is_second: !pending().any(is_revocable) && checks.iter().any(has_reply),
            holds_back: is_spread && pending().any(is_revocable),
        }
    }

    /// Returns true if a rule is asked about in a later round.
    fn waits(&self, rule: &CompiledRule) -> bool {
        self.holds_back && is_final(rule)
    }
}

/// Returns true if the charge of a rule cannot be returned.
fn is_final(rule: &CompiledRule) -> bool {
    matches!(rule.phase, ChargePhase::SharedQueue | ChargePhase::Quota)
}
