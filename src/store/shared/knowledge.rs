//! The knowledge of callers that an authority outside of the gateway counts: the state of the latest
//! reply, and the requests that were admitted here since.
//!
//! Permits that no reply contains yet are in the place of leases: they are outstanding, by terms, so
//! that those of a dead worker expire.

use super::Shared;
use crate::slots::transaction::Transaction;
use crate::{Account, Reservation};
use diana_algorithm::UsageReport;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

/// The reply of the authority to a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportReply {
    /// Permits that the report contained.
    pub permits: u64,
    /// The term in which they were charged here.
    pub term: u64,
    /// Charged permits at the authority, with these.
    pub charged: u64,
    /// Ticks until its window ends, or until its bucket is full.
    pub ends: Micros,
    /// When it decided, as estimated.
    pub at: Micros,
    /// The same on its own clock.
    pub there: Micros,
}

impl Shared {
    /// Permits of a request that become outstanding with its charge: all of them, as far as they
    /// can be counted.
    pub(super) fn unreported(&self, transaction: &Transaction, cost: u64) -> u64 {
        cost.min(transaction.outstanding.room())
    }

    /// The term in which the latest charge is outstanding.
    #[must_use]
    pub fn charge_term(&self) -> u64 {
        self.draft.as_ref().map_or(0, |draft| draft.outstanding.term())
    }

    /// The instant of the latest reply about the caller of a checked request. `None` if the
    /// request was decided without a look.
    #[must_use]
    pub fn replied_at(&self, reservation: &Reservation) -> Option<Micros> {
        let draft = self.draft.as_ref().filter(|_| self.is_current(reservation));
        draft.map(|draft| draft.arrears.replied_at())
    }

    /// Adds permits that the gateway admitted otherwise, whether they fit or not.
    pub fn add(&mut self, account: Account, permits: u64, now: Now) {
        self.use_plan(account.plan);
        let mut transaction = self.begin(account.key, now);
        while transaction.may_try() {
            self.slots.read(&mut transaction);
            self.slots.settle(&mut transaction, &Settlement::debit(permits));
            if transaction.is_overflow() || self.slots.write_returned(&mut transaction) {
                return;
            }
        }
    }

    /// Takes the reply to a report about a caller. Returns false if a later reply is known, which
    /// counted these permits besides those of the gateway, so that a new one is needed.
    pub fn learn(&mut self, account: Account, reply: ReportReply, now: Now) -> bool {
        self.use_plan(account.plan);
        let ReportReply { permits, term, charged, ends, at, there } = reply;
        let mut transaction = self.begin(account.key, now);
        let mut is_news = false;
        while transaction.may_try() && self.slots.read_known(&mut transaction) {
            let known = transaction.outstanding;
            transaction.outstanding = known.without(permits, term).unwrap_or(known);
            is_news = transaction.arrears.reply(at, there);
            if is_news {
                let ago = now.mono.saturating_sub(at);
                let at = Now { mono: at, wall: now.wall.saturating_sub(ago) };
                let more = transaction.outstanding.out();
                self.slots.learn(&mut transaction, &UsageReport { at, charged, ends, more });
            }
            if self.slots.write_returned(&mut transaction) {
                break;
            }
        }
        if let Some(lease) = self.leases.find(account.key) {
            lease.forget_refusal();
        }
        is_news
    }
}
