//! What Redis is asked, and what it answers: usage counted by a script that runs there.
//!
//! A trip has one call of the script for each part of Redis that it concerns, and an answer or an error to
//! each of them, by its place. One call decides about several asks, each of which is charged for all of its rules
//! or for none. The script is the same pure steps as in [`diana_algorithm`], on one clock, that of
//! Redis. Numbers in Lua are exact below 2⁵³, so a debt is whole permits and a rest below one unit
//! in place of their product: exact for every configuration, and free of `rpu`, which may change.
//!
//! All keys of a part have one hash tag ([`Part`]), so that a cluster keeps them where one script reaches
//! them all, and end by themselves a second after they have lost their meaning; only the secret seed
//! and the clock stay. What lies under a key and was not written by the script counts as empty, is
//! counted, and is replaced by the next charge.
//!
//! Redis has a wall clock only, which may step back. The script keeps a monotonic clock beside it in
//! Redis (`clock.lua`): it stands still during a step back of up to a second, and goes on at once
//! after a larger one. So no state is ever judged at an earlier time than one it has seen; a window
//! is kept for one unit after its first request, within which the wall clock may come back to it.
//!
//! What is out of a caller's permits counts as used, and in a count of its own by terms
//! (`terms.lua`): of half a second what is leased, of 100 ms what was charged tentatively. A refusal that would be none without
//! it says so and ends with it. What was granted in an answer that got lost, or to a gateway that died,
//! refuses nobody for good: a bucket has it back after a second, a window counts it as used from then on.
//! A late return is taken all the same, as far as that breaks no bound.

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

use super::part::{Part, Tags};
use diana_policy::key::{Key, Seed};
use diana_policy::time::Micros;

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

/// Calls that are made at once.
#[derive(Clone)]
pub struct Trip {
    /// Where the keys of each part lie. Gateways that have the same ones share usage.
    pub tags: Tags,
    /// What callers were hashed with.
    pub seed: Seed,
    /// The gateway's own random number.
    pub gateway: u64,
    /// The gateway's wall clock when it is sent: Redis is told where the windows about then begin and end.
    pub wall: Micros,
    /// The clock, in tests; otherwise Redis reads its own.
    pub now: Option<Micros>,
    /// The calls, each of which is answered by itself.
    pub calls: Vec<ScriptCall>,
}

/// What one call of the script asks; asks are decided in order. Without any it only says that the gateway
/// lives.
#[derive(Clone)]
pub struct ScriptCall {
    /// Where everything lies that it asks about.
    pub part: Part,
    /// How it names the script.
    pub script: Script,
    /// What is to be decided.
    pub asks: Vec<Ask>,
    /// Which of them settle something.
    pub settles: Option<Settles>,
}

/// The first asks of a call, which settle something. Sent again they do so once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settles {
    /// Who numbers them: a random number.
    pub sender: u64,
    /// Their number, one more than that of those before.
    pub number: u64,
    /// How many asks they are.
    pub asks: usize,
}

/// Questions of which the rules are charged together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Ticks for which rules that are counted elsewhere hold the request.
    pub delay: Micros,
    /// The questions, each about something else.
    pub questions: Vec<Question>,
}

/// A question about one value in Redis.
#[derive(Debug, Clone)]
pub enum Question {
    /// About a caller of a rule; the reply is a [`RuleReply`].
    Rule(Charge),
    /// About its ban; the reply is a [`BanReply`].
    Ban(Refusals),
}

/// What is asked of one rule.
#[derive(Debug, Clone)]
pub struct Charge {
    /// The rule, as it is known across configurations.
    pub fingerprint: u64,
    /// The caller.
    pub caller: Key,
    /// How much it allows.
    pub numbers: Numbers,
    /// Permits to be charged. With none it agrees to everything, and may still lend.
    pub cost: u64,
    /// Permits that one request takes, at least one; a lease is a multiple of it.
    pub unit_cost: u64,
    /// Permits to be leased beyond the cost; the block will often be smaller. If it is empty and there
    /// is no cost, the reply tells when there will be permits for a request.
    pub want: u64,
    /// Whether a refusal is only reported: the rule is then charged if it agrees and all others do.
    pub shadow: bool,
    /// Whether the request may still be refused elsewhere, so that its cost may soon come back.
    pub tentative: bool,
    /// Whether it is only asked whether the cost fits; nothing is charged.
    pub checks: bool,
    /// How many callers of the rule may have a value of their own in Redis.
    pub keys: u64,
    /// What comes back of an earlier charge, whatever is decided.
    pub back: Back,
    /// Where what was used is kept beside what is reserved: permits that have turned out to be. Else `None`.
    pub counted: Option<u64>,
}

/// What is given back of an earlier charge. It must not be sent a second time, not even if the
/// answer got lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Back {
    /// Nothing.
    #[default]
    Nothing,
    /// The cost of a request.
    Cost {
        /// [`RuleReply::receipt`].
        receipt: u64,
        /// [`RuleReply::term`]; zero if it was not charged tentatively.
        term: u64,
        /// Its permits.
        permits: u64,
    },
    /// Nothing; so many permits were used beyond those that were charged.
    Debt {
        /// [`RuleReply::receipt`] of those.
        receipt: u64,
        /// They are charged, whether they fit or not.
        permits: u64,
    },
    /// Nothing; a place in flight that was taken in a term is held from now on, by whom the numbers name.
    Holds {
        /// [`RuleReply::receipt`].
        term: u64,
        /// How many of the caller's it holds now.
        places: u64,
    },
    /// A place that was held.
    Frees {
        /// How many of the caller's are still held.
        places: u64,
    },
    /// Nothing; it is only told what is used.
    Looks,
    /// Nothing; what was used is lifted, and then told as by [`Back::Looks`].
    Lifts,
    /// Nothing; whoever holds places says that it lives.
    Lives,
    /// A block that was leased.
    Block {
        /// [`RuleReply::lease`].
        receipt: u64,
        /// [`RuleReply::term`].
        term: u64,
        /// Its permits.
        block: u64,
        /// Those that nobody was let through for.
        left: u64,
    },
}

/// Refusals that may lead to a ban.
#[derive(Debug, Clone, Copy)]
pub struct Refusals {
    /// The bans of a rule, as they are known across configurations.
    pub fingerprint: u64,
    /// The caller.
    pub caller: Key,
    /// When it is banned, and for how long.
    pub numbers: Numbers,
    /// How many refusals are to be counted; with none it only looks, and a request is refused whose caller is
    /// banned.
    pub refusals: u64,
    /// How many callers may have a value of their own in Redis.
    pub keys: u64,
    /// In place of all that: the caller is banned for so many ticks, or not any more if there are none.
    pub sets: Option<Micros>,
}

impl Question {
    /// Whom it is about.
    #[must_use]
    pub fn caller(&self) -> Key {
        match self {
            Question::Rule(charge) => charge.caller,
            Question::Ban(refusals) => refusals.caller,
        }
    }

    /// Whether a refusal is only reported.
    fn is_shadow(&self) -> bool {
        matches!(self, Question::Rule(Charge { shadow: true, .. }))
    }
}
