//! Rules that ask after they have decided (`ask: after`): no request waits for Redis.
//!
//! A request is decided by the gateway's knowledge of its caller: the state of the latest reply, and
//! its own requests since (`store/shared/knowledge.rs`). Each worker reports the permits that it has
//! admitted as settlements, which Redis applies once, also if replies are lost: those of all callers
//! in one call, fifty times a second. The replies correct that knowledge.

use std::collections::BTreeMap;

use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::replies::Replies;
use diana_store::shared::Shared;
use diana_store::shared::knowledge::ReportReply;
use diana_store::usage::{Order, Remaining};
use diana_store::{Account, Reservation, Store};

/// A caller that is refused is asked about again if the latest reply is as old: others may have
/// used less than expected, and operators may have reset its usage.
const OUTDATED: Micros = SECOND;

/// Permits that this worker has admitted and that no report contains yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreported {
    pub(super) account: Account,
    /// The term in which they were charged here.
    pub(super) term: u64,
    /// With none, Redis is only asked about the caller.
    pub(super) permits: u64,
}

/// The gateway's knowledge of callers, and the permits that this worker must report.
pub(super) struct Reports {
    known: Shared,
    /// Permits by caller (two hashes), plan and term.
    unreported: BTreeMap<[u64; 4], u64>,
}

impl Reports {
    pub(super) fn new(known: Shared) -> Reports {
        Reports { known, unreported: BTreeMap::new() }
    }

    /// Decides a request. A caller that is refused by old knowledge is asked about.
    pub(super) fn check(&mut self, reservation: &mut Reservation) {
        self.known.check(reservation, Replies::none());
        let Reservation { account, now, .. } = *reservation;
        if reservation.refused().is_some()
            && let Some(at) = self.known.replied_at(reservation)
            && now.mono.saturating_sub(at) >= OUTDATED
        {
            self.ask(account);
        }
    }

    /// Charges a request that Redis is asked about, since others are decided before its reply.
    pub(super) fn record_question(&mut self, account: Account, cost: u64, now: Now) {
        self.known.record_grant(account, cost, now);
    }

    /// Charges an admitted request, to be reported.
    pub(super) fn charge(&mut self, reservation: &mut Reservation) {
        self.known.charge(reservation, 0);
        if reservation.is_charged() {
            *self.permits(reservation.account) += reservation.cost;
        }
    }

    /// Cancels the charge of the latest request.
    pub(super) fn cancel(&mut self, reservation: &mut Reservation) {
        let permits = self.permits(reservation.account);
        *permits = permits.saturating_sub(reservation.cost);
        self.known.cancel(reservation);
    }

    pub(super) fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining> {
        self.known.remaining(reservation)
    }

    /// The permits to be reported for a caller that was just decided.
    fn permits(&mut self, account: Account) -> &mut u64 {
        let Account { key: Key { hash, second_hash }, plan } = account;
        let entry = [hash, second_hash, plan, self.known.charge_term()];
        self.unreported.entry(entry).or_default()
    }

    /// Returns true if there is anything to report.
    pub(super) fn has_reports(&self) -> bool {
        !self.unreported.is_empty()
    }

    /// Takes the permits to report of the callers that pass the filter.
    pub(super) fn take(&mut self, may_go: impl Fn(Key) -> bool) -> Vec<Unreported> {
        let key = |[hash, second_hash, ..]: [u64; 4]| Key { hash, second_hash };
        let all = std::mem::take(&mut self.unreported).into_iter();
        let (going, rest): (Vec<_>, Vec<_>) = all.partition(|(entry, _)| may_go(key(*entry)));
        self.unreported.extend(rest);
        let report = |(entry, permits): ([u64; 4], u64)| {
            let [.., plan, term] = entry;
            Unreported { account: Account { key: key(entry), plan }, term, permits }
        };
        going.into_iter().map(report).collect()
    }

    /// Takes the reply to a report. Where replies of several workers came in another order, the
    /// caller is asked about again.
    pub(super) fn learn(&mut self, account: Account, reply: ReportReply, now: Now) {
        if !self.known.learn(account, reply, now) && reply.permits > 0 {
            self.ask(account);
        }
    }

    /// Asks Redis about a caller.
    pub(super) fn ask(&mut self, account: Account) {
        self.permits(account);
    }

    /// Adds permits that were admitted without Redis.
    pub(super) fn add(&mut self, account: Account, permits: u64, now: Now) {
        self.known.add(account, permits, now);
    }

    /// Forgets the usage of a caller, after a reset.
    pub(super) fn forget(&mut self, account: Account, now: Now) {
        _ = self.known.inquire(account, Order::Reset, Replies::none(), now);
    }

    pub(super) fn close(&mut self, now: Now) {
        self.known.close(now);
    }
}
