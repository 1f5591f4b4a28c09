//! Questions to an authority outside of the gateway: plain data, which its backend sends.

use super::lease::Wanted;
use super::slots::arrears::Arrears;
use diana_algorithm::calendar::Windows;
use diana_algorithm::{Codec, Entry};
use diana_policy::bloom::Shape;
use diana_policy::key::Key;
use diana_policy::time::Micros;
use diana_policy::{Ban, Quota};

/// A question about one value of the authority.
#[derive(Debug, Clone)]
pub enum Question {
    /// About a caller of a rule; the reply is a `RuleReply`.
    Rule(Charge),
    /// About a caller's ban; the reply is a `BanReply`.
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
    /// How many callers of the rule may have a separate value at the authority.
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
        /// `RuleReply::receipt`.
        receipt: u64,
        /// `RuleReply::term`; zero if the charge was not tentative.
        term: u64,
        /// Its permits.
        permits: u64,
    },
    /// Charges the permits used beyond the reservation.
    ChargeDebt {
        /// `RuleReply::receipt` of the reservation.
        receipt: u64,
        /// Charged whether they fit or not.
        permits: u64,
    },
    /// Charges permits that the gateway has admitted, whether they fit or not, and then reads usage
    /// as [`Effect::ReadUsage`], of a window until its end.
    Report {
        /// The number of the rule: its store gets the reply.
        rule: usize,
        /// The plan of the caller.
        plan: u64,
        /// The term in which the gateway charged the permits.
        term: u64,
        /// They may be zero.
        permits: u64,
    },
    /// Confirms an in-flight slot that was granted in a term, for the holder in `numbers`.
    HoldSlots {
        /// `RuleReply::receipt`.
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
        /// `RuleReply::lease`.
        receipt: u64,
        /// `RuleReply::term`.
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
    /// How many callers may have a separate value at the authority.
    pub keys: u64,
    /// If set, bans the caller for this many ticks, or ends its ban if zero. The other fields are
    /// ignored.
    pub sets: Option<Micros>,
    /// Whether a ban is only reported. Then it does not refuse the other questions of its ask.
    pub shadow: bool,
}

impl Charge {
    /// The block that it asks for.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted { permits: self.want, ahead: self.ahead }
    }
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
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        matches!(
            self,
            Question::Rule(Charge { shadow: true, .. })
                | Question::Ban(Refusals { shadow: true, .. })
        )
    }
}

/// A rule's algorithm and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The algorithm's name in the script.
    pub kind: &'static str,
    /// Permits per unit.
    pub rpu: u64,
    /// Ticks of a unit.
    pub unit: u64,
    /// Parameters of the algorithm.
    pub own: [i64; 3],
    /// If the rule has plans: the lowest `rpu` of all plans, the longest lifetime of usage under
    /// any plan in ticks, and the highest `rpu`.
    pub plans: Option<[u64; 3]>,
    /// For rules with calendar windows: the windows, sent instead of `own[0]`.
    pub windows: Option<Windows>,
    /// For daily quotas of many accounts: the filter.
    pub daily: Option<Shape>,
}

impl Numbers {
    /// The parameters of a rule. `None` if the script does not support it.
    #[must_use]
    pub fn of_rule(entry: &Entry, quota: &Quota) -> Option<Numbers> {
        let codec = entry.codec(quota)?;
        let windows = entry.by_calendar.then(|| Windows::of(quota));
        let unit = windows.map_or(quota.period(), |windows| windows.longest());
        let (rpu, own) = (quota.rpu, (codec.numbers)(quota));
        let plans = [quota.lasting(), quota.longest, quota.fastest()];
        let plans = Some(plans).filter(|plans| *plans != [rpu, 0, rpu]);
        Some(Numbers { kind: codec.kind, rpu, unit, own, windows, plans, daily: None })
    }

    /// The parameters of a daily quota of many accounts.
    #[must_use]
    pub fn of_quota(quota: &Quota, shape: Shape) -> Numbers {
        let own = [0, shape.width().cast_signed(), 0];
        let days = Windows::of(quota);
        let (rpu, unit, windows) = (quota.rpu, days.longest(), Some(days));
        Numbers { kind: "Q", rpu, unit, own, windows, plans: None, daily: Some(shape) }
    }

    /// The parameters of a rule's bans, which are counted as an additional rule: its cost is the
    /// number of refusals, and with a cost of zero it refuses banned callers.
    #[must_use]
    pub fn of_ban(ban: &Ban) -> Numbers {
        let own = [ban.period, ban.max, ban.halve_after].map(Codec::signed);
        let (rpu, unit) = (ban.after, ban.slice());
        Numbers { kind: "B", rpu, unit, own, windows: None, plans: None, daily: None }
    }

    /// The same for in-flight slots of the holder with this number, less than 2⁵³.
    #[must_use]
    pub fn held_by(self, holder: u64) -> Numbers {
        Numbers { own: [Codec::signed(holder), 0, 0], ..self }
    }
}
