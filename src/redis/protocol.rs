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
mod pack;
mod read;
mod reply;
pub mod resp;
mod text;
mod write;

pub use diana_store::question::{Charge, Effect, Numbers, Question, Refusals};
pub use diana_store::replies::{BanReply, Reply, RuleReply};
pub use failure::Failure;
pub use reply::{AskReply, Decided, ScriptAnswer};

use super::shard::{Shard, Tags};
use diana_policy::key::Seed;
use diana_policy::time::Micros;
use diana_store::backend::Receiver;

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
