//! What Redis is asked, and what it answers: usage counted by a script that runs there.
//!
//! One call of the script decides about several asks, each of which is charged for all of its rules
//! or for none. The script is the same pure steps as in [`crate::algorithm`], on one clock, that of
//! Redis. Numbers in Lua are exact below 2⁵³, so a debt is whole permits and a rest below one unit
//! in place of their product: exact for every configuration, and free of `rpu`, which may change.
//!
//! All keys of a namespace have one hash tag, so that a cluster keeps them where one script reaches
//! them all, and end by themselves a second after they have lost their meaning; only the secret seed
//! and the clock stay. What lies under a key and was not written by the script counts as empty, is
//! counted, and is replaced by the next charge.
//!
//! Redis has a wall clock only, which may step back. The script keeps a monotonic clock beside it in
//! Redis (`clock.lua`): it stands still during a step back of up to a second, and goes on at once
//! after a larger one. So no state is ever judged at an earlier time than one it has seen; a window
//! is kept for one unit after its first request, within which the wall clock may come back to it.
//!
//! What is out of a caller's permits counts as used, and in a count of its own by terms of 100 ms
//! (`terms.lua`): what is lent, and what was charged tentatively. A refusal that would be none without
//! it says so and ends with it. What was granted in an answer that got lost, or to a gateway that died,
//! refuses nobody for good: a bucket has it back after 200 ms, a window counts it as used from then on.
//! A late return is taken all the same, as far as that breaks no bound.

mod failure;
mod numbers;
mod pack;
mod read;
pub mod resp;
mod text;
mod write;

use std::rc::Rc;

pub use failure::Failure;
pub use numbers::Numbers;

use crate::decision::Retry;
use crate::key::{Key, Seed};
use crate::time::Micros;

/// How to get in.
#[derive(Clone, Default)]
pub struct Login {
    /// Who asks; without one it is Redis's default user.
    pub username: Option<String>,
    /// Its password, if Redis wants one.
    pub password: Option<String>,
    /// Number of the database.
    pub db: u32,
}

/// How a call names the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Shortly: it fails with [`Failure::NoScript`] where Redis has not seen the text.
    Digest,
    /// By its text, which Redis then knows until it stops.
    Text,
}

/// What one call asks; asks are decided in order. Without any it only says that the gateway lives.
#[derive(Clone)]
pub struct Trip {
    /// Gateways that name the same one share usage.
    pub namespace: Rc<str>,
    /// What callers were hashed with.
    pub seed: Seed,
    /// The gateway's own random number.
    pub gateway: u64,
    /// The clock, in tests; otherwise Redis reads its own.
    pub now: Option<Micros>,
    /// What is to be decided.
    pub asks: Vec<Ask>,
}

/// Rules that are charged together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Ticks for which rules that are counted elsewhere hold the request.
    pub delay: Micros,
    /// The rules, each at most once.
    pub rules: Vec<Charge>,
}

/// What is asked of one rule.
#[derive(Debug, Clone)]
pub struct Charge {
    /// The rule, as it is known across configurations.
    pub identity: u64,
    /// The caller.
    pub caller: Key,
    /// How much it allows.
    pub numbers: Numbers,
    /// Permits to be charged. With none it agrees to everything, and may still lend.
    pub cost: u64,
    /// Permits that one request takes, at least one; a lease is a multiple of it.
    pub grain: u64,
    /// Permits to be leased beyond the cost; the block will often be smaller. If it is empty and there
    /// is no cost, the opinion tells when there will be permits for a request.
    pub want: u64,
    /// How many of those are needed at once, so that they are leased even if that is most of what is
    /// left.
    pub soon: u64,
    /// Whether a refusal is only reported: the rule is then charged if it agrees and all others do.
    pub shadow: bool,
    /// Whether the request may still be refused elsewhere, so that its cost may soon come back.
    pub tentative: bool,
    /// How many callers of the rule may have a value of their own in Redis.
    pub keys: u64,
    /// What comes back of an earlier charge, whatever is decided.
    pub back: Back,
}

/// What is given back of an earlier charge. It must not be sent a second time, not even if the
/// answer got lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Back {
    /// [`Opinion::lease`] for a lease, [`Opinion::receipt`] for the cost of a request.
    pub receipt: u64,
    /// [`Opinion::term`]; zero for a cost that was not charged tentatively.
    pub term: u64,
    /// The block that was leased; zero for the cost of a request.
    pub block: u64,
    /// Permits that nobody was let through for.
    pub left: u64,
}

/// What Redis answers.
#[derive(Clone)]
pub enum Answer {
    /// The namespace's seed is another, and nothing was decided.
    Seed(Seed),
    /// What was decided.
    Decided(Decided),
}

/// See [`Answer::Decided`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Gateways that have called within the last four or five seconds, this one included.
    pub gateways: u64,
    /// The instant of the trip on Redis's monotonic clock.
    pub now: Micros,
    /// Values that were not ours, and counted as empty.
    pub foreign: u64,
    /// One for each ask.
    pub asks: Vec<Outcome>,
}

/// What became of an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Ticks until the request may leave; nothing if it was refused and nothing was charged.
    pub wait: Option<Micros>,
    /// One for each rule.
    pub rules: Vec<Opinion>,
}

/// What one rule says. Of a rule that was not charged only the first three mean something, and
/// [`Opinion::overflow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opinion {
    /// When to come back, if it refuses. What lies more than 2⁵³ ticks ahead is said to be that far.
    pub retry: Option<Retry>,
    /// Where it would not refuse if all that is out came back: ticks until that is over. A refusal
    /// without is one for what was used.
    pub loan: Micros,
    /// Permits left, those of the lease not counted.
    pub remaining: u64,
    /// Under which the cost can be given back.
    pub receipt: u64,
    /// The term in which both count as out.
    pub term: u64,
    /// Permits leased beyond the cost.
    pub block: u64,
    /// Under which the block can be given back.
    pub lease: u64,
    /// Ticks after which the block may be spent, counted from after the call, if it was charged in the next
    /// slice: until that begins.
    pub starts: Micros,
    /// Ticks in which the block has to be spent, counted from before the call.
    pub spend: Micros,
    /// Whether the caller shares a value with others, since the rule has as many as it may.
    pub overflow: bool,
}
