//! What one rule says about a request, from when it is found to apply until all have said the same.

use super::ask::Grant;
use crate::decision::{Decision, Retry};
use crate::key::Key;
use crate::store::Reservation;
use crate::time::Micros;

/// Whom a rule counts a request under, and how.
pub(super) struct Subject {
    pub(super) rule: usize,
    pub(super) key: Key,
    /// Check and report only.
    pub(super) shadow: bool,
    /// Whether the caller has a name, so that it is its own doing if the request is refused.
    pub(super) is_own: bool,
    /// Whether the rule refuses whoever has none.
    pub(super) denied: bool,
}

/// What one rule says about the request in hand.
pub(super) struct Opinion {
    pub(super) rule: usize,
    pub(super) key: Key,
    pub(super) decision: Decision,
    /// Ticks for which others may hold the permits for which it is refused; zero if the refusal is final.
    pub(super) loan: Micros,
    /// Judge and report only.
    pub(super) shadow: bool,
    /// Whether the rule bans the caller, without having judged.
    pub(super) banned: bool,
    /// Whether it is the caller's own doing if it is refused.
    pub(super) is_own: bool,
    /// What its store found out, once it was checked; to be charged.
    pub(super) reservation: Option<Reservation>,
    /// Whether the fleet is asked about a ban, too.
    pub(super) looks: bool,
    /// Whether the fleet has to be asked before anything can be decided.
    pub(super) ask: bool,
    /// Whether it was asked in vain.
    pub(super) alone: bool,
    /// What the fleet's store charged, and what it said was left.
    pub(super) grant: Option<Grant>,
    pub(super) known: Option<u64>,
    /// Permits left after the decision, once somebody wants to know, and whether that means anything.
    pub(super) remaining: u64,
    pub(super) told: bool,
}

impl Opinion {
    pub(super) fn of(subject: Subject) -> Opinion {
        let Subject { rule, key, shadow, is_own, denied } = subject;
        Opinion {
            rule,
            key,
            decision: if denied { Decision::NEVER } else { Decision::NOW },
            loan: 0,
            shadow,
            banned: false,
            is_own,
            reservation: None,
            looks: false,
            ask: false,
            alone: false,
            grant: None,
            known: None,
            remaining: 0,
            told: true,
        }
    }

    /// Takes what the store found out.
    pub(super) fn reserve(&mut self, reservation: Reservation) {
        (self.decision, self.ask) = (reservation.decision(), reservation.asks());
        self.loan = reservation.loan();
        self.is_own &= !reservation.is_overflow();
        self.reservation = Some(reservation);
    }

    pub(super) fn retry(&self) -> Option<Retry> {
        match self.decision {
            Decision::Refuse { retry } => Some(retry),
            Decision::Admit { .. } => None,
        }
    }

    pub(super) fn is_refusal(&self) -> bool {
        !self.shadow && !self.decision.is_admitted()
    }

    /// Ticks that the rule holds the request.
    pub(super) fn wait(&self) -> Micros {
        match self.decision {
            Decision::Admit { wait } if !self.shadow => wait,
            _ => 0,
        }
    }
}
