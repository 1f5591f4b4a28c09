//! What the values in Redis are called.

use std::fmt;

use super::Question;
use diana_policy::key::Key;

/// What lies under a key of its own. All of a part begin with [`prefix`].
pub(super) enum Name {
    /// The secret that callers are hashed with.
    Seed,
    /// The clock that never goes back.
    Clock,
    /// The gateways, and when each said last that it lives.
    Gateways,
    /// The number of the last batch of settlements that was taken from a sender.
    Ledger(u64),
    /// What a caller used of a rule, or its ban.
    Caller {
        /// The rule, or its bans.
        fingerprint: u64,
        /// Whose it is.
        caller: Key,
    },
    /// A piece of a filter that counts many accounts by the day.
    Piece {
        /// The rule.
        fingerprint: u64,
        /// How many lines the filter has: it is another one where there are other parts.
        lines: u64,
        /// The number of the piece.
        piece: u64,
    },
}

/// What keys of a namespace with this hash tag begin with.
pub(super) fn prefix(tag: &str) -> String {
    format!("diana:{{{tag}}}:")
}

impl Name {
    /// What a question is about.
    pub(super) fn of(question: &Question) -> Name {
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
            Name::Caller { fingerprint, caller: Key { hash, second_hash } } => {
                write!(f, "{fingerprint:016x}:{hash:016x}{second_hash:016x}")
            }
            Name::Piece { fingerprint, lines, piece } => {
                write!(f, "{fingerprint:016x}:{lines:x}/{piece:x}")
            }
        }
    }
}
