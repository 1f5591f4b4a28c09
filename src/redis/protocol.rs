//! The protocol with Redis: a script there counts usage.
//!
//! A pipeline contains the calls of one batch: one call of the script for each shard concerned.
//! Each call has a separate reply or error, identified by its position. A call decides several
//! asks, and each ask is charged for all of its rules or for none. The script implements the pure
//! steps of
//! [`diana_algorithm`], on the clock of Redis. Numbers in Lua are exact below 2⁵³, so a debt is
//! stored as whole permits and a rest below one unit instead of their product. This is exact for
//! every configuration and independent of `rpu`, which may change.
//!
//! All keys of a shard have one hash tag ([`Shard`]), so that a Redis Cluster stores them where one
//! script reaches them all. They expire a second after they have lost their meaning; only the
//! secret seed and the clock are permanent. A value that the script has not written counts as
//! empty, is reported as corrupt, and is replaced by the next charge.
//!
//! Redis has only a wall clock, which may step back. The script also stores a monotonic clock in
//! Redis (`clock.lua`): it stands still during a step back of up to a second, and continues at once
//! after a larger one. So no state is evaluated at an earlier time than before. A window is stored
//! for one unit after its first request, during which the wall clock may return to it.
//!
//! Outstanding permits count as used, and are also counted separately by terms (`terms.lua`):
//! leases by terms of half a second, tentative charges by terms of 100 ms. A refusal that only
//! outstanding permits cause is marked as such and ends with them. Permits granted in a lost reply,
//! or to a gateway that died, refuse no request permanently: a bucket regains them after a second,
//! and a window counts them as used. A late return is accepted as far as it breaks no bound.

mod failure;
mod key;
mod numbers;
mod pack;
mod read;
mod reply;
pub mod resp;
mod text;
mod write;

pub use failure::Failure;
pub use numbers::Numbers;
pub use reply::{AskReply, BanReply, Decided, Reply, RuleReply, ScriptAnswer};

use super::shard::{Shard, Tags};
use diana_policy::key::{Key, Seed};
use diana_policy::time::Micros;
use diana_store::backend::Receiver;
use diana_store::slots::arrears::Arrears;

/// Credentials for Redis.
#[derive(Clone, Default)]
pub struct Login {
    /// The user; Redis's default user if absent.
    pub username: Option<String>,
    /// The password, if Redis requires one.
    pub password: Option<String>,
    /// The number of the database.
    pub db: u32,
}

/// How a call refers to the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// By its digest. Fails with [`Failure::NoScript`] if Redis does not have the script.
    Digest,
    /// By its text, which Redis then caches until it stops.
    Text,
}

/// The calls of a batch, which are sent together.
#[derive(Clone)]
pub struct Pipeline {
    /// The hash tags of the shards. Gateways with equal tags share usage.
    pub tags: Tags,
    /// The seed of the callers' hashes.
    pub seed: Seed,
    /// The gateway's random number.
    pub gateway: u64,
    /// The gateway's wall clock when the pipeline is sent. Redis receives the bounds of calendar
    /// windows near this time.
    pub wall: Micros,
    /// The clock, in tests; otherwise Redis reads its own.
    pub now: Option<Micros>,
    /// What identifies the pipeline, if it is sent again: Redis then decides it once.
    pub number: Option<CallNumber>,
    /// The calls, each with a separate reply.
    pub calls: Vec<ScriptCall>,
    /// The number of the gateway's rules, if the call to the first shard reports it.
    pub rules: Option<u64>,
    /// A number that is higher than in earlier calls of the gateway, if the call to the first shard
    /// has one.
    pub ordinal: Option<u64>,
}

/// Identifies a pipeline of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNumber {
    /// The sender's random number.
    pub sender: u64,
    /// Where Redis stores the answer. No other pending pipeline of the sender has the same slot.
    pub slot: usize,
    /// Higher than those of the sender's earlier pipelines.
    pub number: u64,
}

/// One call of the script. Its asks are decided in order. A call without asks is only a heartbeat
/// of the gateway.
#[derive(Clone)]
pub struct ScriptCall {
    /// The shard of all its keys.
    pub shard: Shard,
    /// How it refers to the script.
    pub script: Script,
    /// The requests to decide.
    pub asks: Vec<Ask>,
    /// The batch of settlements at the beginning of `asks`.
    pub settles: Option<SettlementBatch>,
}

/// A batch of settlements: the first asks of a call. Redis applies it once, even if it is sent
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettlementBatch {
    /// The sender's random number.
    pub sender: u64,
    /// The batch's number, one more than that of the previous batch.
    pub number: u64,
    /// The number of asks in the batch.
    pub asks: usize,
}

/// Questions about rules that are charged together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Ticks for which rules counted elsewhere hold the request.
    pub delay: Micros,
    /// The questions, each about a different value.
    pub questions: Vec<Question>,
    /// The receiver of the results, which stays here. `None` if the ask only returns permits.
    pub receiver: Option<Receiver>,
}

/// A question about one value in Redis.
#[derive(Debug, Clone)]
pub enum Question {
    /// About a caller of a rule; the reply is a [`RuleReply`].
    Rule(Charge),
    /// About a caller's ban; the reply is a [`BanReply`].
    Ban(Refusals),
}

/// A charge of one rule.
#[derive(Debug, Clone)]
pub struct Charge {
    /// The rule, identified across configurations.
    pub fingerprint: u64,
    /// The caller.
    pub caller: Key,
    /// The rule's algorithm and limits.
    pub numbers: Numbers,
    /// Permits to charge. A charge of zero is always admitted, and may lease a block.
    pub cost: u64,
    /// Permits per request, at least one; a lease is a multiple of it.
    pub unit_cost: u64,
    /// Permits to lease in addition to the cost; the block is often smaller. If the block is empty
    /// and the cost is zero, the reply has the retry delay of a request.
    pub want: u64,
    /// Ticks in which they are expected to be spent. A block that ends earlier is smaller.
    pub ahead: Micros,
    /// Whether a refusal is only reported. The rule is then charged if it admits and all others do.
    pub shadow: bool,
    /// Whether the request may still be refused elsewhere, so that its cost may soon be returned.
    pub tentative: bool,
    /// Whether to check only, without a charge.
    pub checks: bool,
    /// How many callers of the rule may have a separate value in Redis.
    pub keys: u64,
    /// Permits to return from an earlier charge, or another effect, independent of the decision.
    pub effect: Effect,
    /// For rules that store usage separately from reservations: permits of the settled usage.
    /// Otherwise `None`.
    pub counted: Option<u64>,
    /// The caller's arrears in this gateway, which are charged before the decision, as far as
    /// permits remain. Each permit of a total is charged once, even if the question is sent again.
    pub arrears: Option<Arrears>,
    /// Permits by which the charged arrears may exceed the limit of a bucket: its debt.
    pub overdraft: u64,
}

/// Effect of a question besides its charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// No effect besides the charge.
    #[default]
    None,
    /// Returns the cost of a request.
    ReturnCost {
        /// [`RuleReply::receipt`].
        receipt: u64,
        /// [`RuleReply::term`]; zero if the charge was not tentative.
        term: u64,
        /// Its permits.
        permits: u64,
    },
    /// Charges the permits used beyond the reservation.
    ChargeDebt {
        /// [`RuleReply::receipt`] of the reservation.
        receipt: u64,
        /// Charged whether they fit or not.
        permits: u64,
    },
    /// Confirms an in-flight slot that was granted in a term, for the holder in `numbers`.
    HoldSlots {
        /// [`RuleReply::receipt`].
        term: u64,
        /// The number of the caller's slots of this holder.
        slots: u64,
    },
    /// Frees an in-flight slot, or reports the slots of a caller again.
    FreeSlots {
        /// The number of the caller's remaining slots of this holder.
        slots: u64,
    },
    /// Only reads usage.
    ReadUsage,
    /// Resets usage, and then reads it as [`Effect::ReadUsage`].
    Reset,
    /// A heartbeat of the holder of in-flight slots.
    Heartbeat,
    /// Returns a leased block.
    ReturnBlock {
        /// [`RuleReply::lease`].
        receipt: u64,
        /// [`RuleReply::term`].
        term: u64,
        /// Its permits.
        block: u64,
        /// Its unspent permits.
        left: u64,
    },
}

/// Refusals that may lead to a ban.
#[derive(Debug, Clone, Copy)]
pub struct Refusals {
    /// The rule's bans, identified across configurations.
    pub fingerprint: u64,
    /// The caller.
    pub caller: Key,
    /// The ban's threshold and duration.
    pub numbers: Numbers,
    /// Refusals to count. With zero, the script only checks whether the caller is banned.
    pub refusals: u64,
    /// How many callers may have a separate value in Redis.
    pub keys: u64,
    /// If set, bans the caller for this many ticks, or ends its ban if zero. The other fields are
    /// ignored.
    pub sets: Option<Micros>,
    /// Whether a ban is only reported. Then it does not refuse the other questions of its ask.
    pub shadow: bool,
}

impl Question {
    /// The caller.
    #[must_use]
    pub fn caller(&self) -> Key {
        match self {
            Question::Rule(charge) => charge.caller,
            Question::Ban(refusals) => refusals.caller,
        }
    }

    /// The fingerprint of the rule, or of its bans.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        match self {
            Question::Rule(charge) => charge.fingerprint,
            Question::Ban(refusals) => refusals.fingerprint,
        }
    }

    /// Returns true if a refusal is only reported.
    fn is_shadow(&self) -> bool {
        matches!(
            self,
            Question::Rule(Charge { shadow: true, .. })
                | Question::Ban(Refusals { shadow: true, .. })
        )
    }
}
