//! What the rest of the program knows of an algorithm without knowing which one it is.

use std::rc::Rc;

use super::{Algorithm, CountsUsed, counted};
use diana_policy::{Quota, Settling};

/// How the value of a key is written.
#[derive(Debug)]
pub enum Form {
    /// A whole number.
    Number,
    /// A duration such as `1500ms`, which is a number of ticks.
    Duration,
}

/// An optional key of a rule that an algorithm understands.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the configuration; the same in every algorithm that takes it.
    pub name: &'static str,
    /// Its place in a quota.
    pub field: fn(&mut Quota) -> &mut Option<u64>,
    /// How its value is written.
    pub form: Form,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
    /// Whether Redis can count by it, so that it may stand beside `scope: global`.
    pub global: bool,
    /// Whether plans of a rule may have a value of their own.
    pub by_plan: bool,
}

/// A combination of values that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The key to blame.
    pub key: &'static str,
    /// The other keys that it follows from, given or left out.
    pub with: &'static [&'static str],
    /// What is wrong and what is allowed, as the rest of a sentence.
    pub message: String,
}

impl Conflict {
    /// A key of a rule that refuses everything.
    pub(super) fn beside_nothing(key: &'static str) -> Conflict {
        let message = "means nothing beside `rpu: 0`, which refuses everything".into();
        Conflict { key, with: &["rpu"], message }
    }

    /// A request that costs more than a unit allows.
    pub(super) fn cost_above_rpu(quota: &Quota) -> Conflict {
        let message = format!(
            "found `{}`, which never fits; allowed: at most `rpu`, {}",
            quota.cost, quota.rpu
        );
        Conflict { key: "cost", with: &["rpu"], message }
    }
}

/// An algorithm, or every invalid combination of the quota's numbers.
pub type Built<A> = Result<Rc<A>, Vec<Conflict>>;

/// Any algorithm, likewise.
pub type BuiltAlgorithm = Built<dyn Algorithm>;

/// How permits may be charged before they are needed, and kept to be spent without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leasing {
    /// Not at all: every request has a turn of its own.
    Never,
    /// Until the window or the slice ends that they were charged in. Then all of them come back.
    Window,
    /// For as long as they are held back ([`Algorithm::hold_back`]). They come back one by one.
    Bucket,
}

/// What an algorithm can do with a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Can {
    /// Whether a request that is held has a place in a line, which is given back if its client leaves.
    pub queues: bool,
    /// Whether a request may have to wait for its turn.
    pub holds: bool,
    /// How its permits may be kept for later.
    pub leasing: Leasing,
    /// Whether what a request takes may be known at its end only.
    pub settles: bool,
}

impl Can {
    /// What windows can do.
    pub(super) const WINDOW: Can =
        Can { queues: false, holds: false, leasing: Leasing::Window, settles: true };
}

/// How Redis counts by an algorithm: the part of the script in `redis/protocol/script` that does.
#[derive(Debug)]
pub struct Codec {
    /// What the script calls it.
    pub kind: &'static str,
    /// What the script has to know of a quota besides `rpu` and the unit.
    pub numbers: fn(&Quota) -> [i64; 3],
}

impl Codec {
    /// In the numbers of a quota: what was left out.
    pub(super) const NONE: i64 = -1;

    /// In the numbers of a quota: `number`, or the largest that there is.
    #[must_use]
    pub fn signed(number: u64) -> i64 {
        i64::try_from(number).unwrap_or(i64::MAX)
    }
}

/// One algorithm as the rest of the program knows it.
#[derive(Debug)]
pub struct Entry {
    /// Short name, shown in generated rule names, headers and logs.
    pub short: &'static str,
    /// Long name, as the source documents write it.
    pub long: &'static str,
    /// Optional keys beyond those that every rule has.
    pub keys: &'static [Setting],
    /// Builds the algorithm, or names every combination that means nothing.
    pub build: fn(&Quota) -> BuiltAlgorithm,
    /// Builds it for rules that count used permits separately from reserved ones. `None` if it cannot.
    pub counts_used: Option<fn(&Quota) -> Built<dyn CountsUsed>>,
    /// What it can do with a quota that it can be built from.
    pub can: fn(&Quota) -> Can,
    /// How Redis counts by it, if it does. Without one no rule is `global`.
    pub codec: Option<Codec>,
    /// The quota of one of so many gateways that have to go by themselves.
    pub part: fn(&Quota, u64) -> Quota,
    /// Whether it counts by windows of the calendar, so that many accounts can be counted by the day in
    /// fixed memory.
    pub by_calendar: bool,
    /// What a state means beyond unit, time zone and number of words: rules go on with what was used
    /// only where it is the same. [`Entry::PLAIN`] if there is nothing more to it.
    pub layout: fn(&Quota) -> u64,
}

impl Entry {
    /// The layout of most states. Another number would have all rules of all fleets start anew.
    pub const PLAIN: u64 = 10;

    /// How Redis counts by it under a quota; nothing if it does not know a key of the rule.
    #[must_use]
    pub fn codec(&self, quota: &Quota) -> Option<&Codec> {
        let mut quota = *quota;
        let mut knows = |key: &Setting| key.global || (key.field)(&mut quota).is_none();
        self.codec.as_ref().filter(|_| self.keys.iter().all(&mut knows))
    }

    /// Builds the algorithm of a rule. With `keeps_used` it counts used permits separately from reserved ones.
    ///
    /// # Errors
    /// Every invalid combination of the quota's numbers.
    pub fn algorithm(&self, quota: &Quota, keeps_used: bool) -> BuiltAlgorithm {
        match self.counts_used.filter(|_| keeps_used) {
            Some(build) => build(quota).map(counted),
            None => (self.build)(quota),
        }
    }

    /// Whether a rule that settles so has what was used kept beside what is reserved, which stays when an operator lifts
    /// what was used, and refuses in another way.
    #[must_use]
    pub fn keeps_used(&self, settling: Option<&Settling>) -> bool {
        settling.is_some_and(|it| !it.is_place && (it.count.is_some() || it.reserve > 0))
    }
}
