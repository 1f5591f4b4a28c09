//! Names of the values in Redis.

use std::fmt;

use super::{Charge, Question};
use diana_policy::key::Key;

/// The rest of a key after [`prefix`].
pub(super) enum Name {
    /// The secret seed of the callers' hashes.
    Seed,
    /// The monotonic clock.
    Clock,
    /// The gateways and their latest heartbeats.
    Gateways,
    /// The number of the latest batch of settlements that was applied for a sender.
    Ledger(u64),
    /// The part of a gateway's arrears of a caller that is charged.
    Arrears {
        /// The gateway's random number.
        gateway: u64,
        /// The rule.
        fingerprint: u64,
        /// The caller.
        caller: Key,
    },
    /// A caller's usage of a rule, or its ban.
    Caller {
        /// The rule, or its bans.
        fingerprint: u64,
        /// The caller.
        caller: Key,
    },
    /// A piece of the filter of a daily quota.
    Piece {
        /// The rule.
        fingerprint: u64,
        /// The number of lines of the filter. Other numbers of shards need another filter.
        lines: u64,
        /// The number of the piece.
        piece: u64,
    },
}

/// The prefix of all keys with this hash tag.
pub(super) fn prefix(tag: &str) -> String {
    format!("diana:{{{tag}}}:")
}

impl Name {
    /// The names of the values that a question is about.
    pub(super) fn all(question: &Question, gateway: u64) -> impl Iterator<Item = Name> {
        let arrears = match question {
            Question::Rule(Charge { fingerprint, caller, arrears: Some(_), .. }) => {
                Some(Name::Arrears { gateway, fingerprint: *fingerprint, caller: *caller })
            }
            _ => None,
        };
        [Name::of(question)].into_iter().chain(arrears)
    }

    /// The name of the value that a question is about.
    fn of(question: &Question) -> Name {
        match question {
            Question::Rule(charge) => match charge.numbers.daily {
                Some(shape) => {
                    let [lines, ..] = shape.layout();
                    let piece = shape.piece(charge.caller).0;
                    Name::Piece { fingerprint: charge.fingerprint, lines, piece }
                }
                None => Name::Caller { fingerprint: charge.fingerprint, caller: charge.caller },
            },
            Question::Ban(refusals) => {
                Name::Caller { fingerprint: refusals.fingerprint, caller: refusals.caller }
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Seed => f.write_str("seed"),
            Name::Clock => f.write_str("clock"),
            Name::Gateways => f.write_str("gateways"),
            Name::Ledger(sender) => write!(f, "settled:{sender:016x}"),
            Name::Arrears { gateway, fingerprint, caller: Key { hash, second_hash } } => {
                write!(f, "arrears:{gateway:016x}:{fingerprint:016x}:{hash:016x}{second_hash:016x}")
            }
            Name::Caller { fingerprint, caller: Key { hash, second_hash } } => {
                write!(f, "{fingerprint:016x}:{hash:016x}{second_hash:016x}")
            }
            Name::Piece { fingerprint, lines, piece } => {
                write!(f, "{fingerprint:016x}:{lines:x}/{piece:x}")
            }
        }
    }
}
