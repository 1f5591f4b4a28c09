//! The rules of a world: numbers for the oracles, text for the gateways.

use std::sync::Arc;

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::time::{Micros, SECOND, Unit};
use diana_policy::{Quota, Zone};
use fastrand::Rng;

use super::node::Visit;
use super::plan::EPOCH;

/// The workers that share a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Local,
    Gateway,
    Global,
}

/// The subject of a world: related features and faults together find more bugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Any,
    /// Costs that responses report.
    Settling,
    /// Requests at a time.
    Places,
    /// Callers frequent enough for leases.
    Leases,
}

/// The permits that a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Plain(u64),
    /// Reported by the response.
    QuestionResult {
        reserve: u64,
        max: u64,
        /// The largest estimate in a request, which takes the place of `reserve`.
        estimates: Option<u64>,
    },
}

impl Cost {
    /// Permits charged on the arrival of a request.
    pub fn reserved(self, visit: &Visit) -> u64 {
        match self {
            Cost::Plain(cost) => cost,
            Cost::QuestionResult { reserve, estimates, .. } => match (estimates, visit.estimate) {
                (Some(most), Some(estimate)) => estimate.min(most),
                _ => reserve,
            },
        }
    }

    pub fn max(self) -> u64 {
        match self {
            Cost::Plain(cost) => cost,
            Cost::QuestionResult { max, .. } => max,
        }
    }
}

/// A caller refused `after` times within a second is banned for `lasts`.
#[derive(Debug, Clone, Copy)]
pub struct Ban {
    pub after: usize,
    pub lasts: Micros,
}

impl Ban {
    pub const WITHIN: Micros = SECOND;
}

#[derive(Debug, Clone)]
pub struct Rule {
    pub name: String,
    pub scope: Scope,
    /// `W`, `SW`, `TB`, `LB`; `P` limits requests at a time.
    pub algo: &'static str,
    pub unit: Micros,
    /// Permits per unit, or requests at a time.
    pub limit: u64,
    /// The same under the plan `gold`, if there is one.
    pub gold: Option<u64>,
    /// Whether all callers have it together.
    pub of_all: bool,
    pub cost: Cost,
    pub ban: Option<Ban>,
    /// Whether documents of the configuration centre double the limits at times.
    pub is_doubled: bool,
    /// When the local day ends; zero in UTC.
    pub midnight: Micros,
    /// The unit of a rule of whole days. A week or month ends at that instant, too.
    pub period: &'static str,
    /// Whether requests contain the first day of a month.
    pub has_month_in_data: bool,
    /// Whether callers of a day are counted in a filter of fixed size.
    pub is_filter: bool,
}

pub const DAY: Micros = 24 * 60 * 60 * SECOND;

impl Rule {
    /// A rule of a world with this theme.
    pub fn draw(name: String, theme: Theme, scopes: &[Scope], rng: &mut Rng) -> Rule {
        let scope = scopes[rng.usize(..scopes.len())];
        let algos: &[&str] = match theme {
            Theme::Settling => &["W", "SW", "TB"],
            Theme::Places => &["P", "P", "P", "W"],
            Theme::Leases => &["W", "SW", "TB", "LB"],
            Theme::Any => &["W", "SW", "TB", "LB", "P"],
        };
        let algo = algos[rng.usize(..algos.len())];
        // A line may be a second long at most.
        let is_long = algo != "LB" && rng.u8(..4) < if theme == Theme::Settling { 3 } else { 1 };
        let unit = if is_long { 60 * SECOND } else { SECOND };
        let limit = match algo {
            "P" => rng.u64(1..=12),
            _ if theme == Theme::Leases => rng.u64(40..=500),
            _ => rng.u64(1..=20) << rng.u8(..4),
        };
        let can_settle = ["W", "SW", "TB"].contains(&algo) && theme != Theme::Leases;
        let settles = can_settle && (theme == Theme::Settling || rng.u8(..3) == 0);
        // Token buckets cannot settle.
        let algo = if settles && algo == "TB" { "SW" } else { algo };
        let cost = match settles {
            true => {
                let max = rng.u64(1..=limit.min(5));
                Cost::QuestionResult { reserve: rng.u64(0..=max), max, estimates: None }
            }
            false if algo == "P" || rng.bool() => Cost::Plain(1),
            false => Cost::Plain(rng.u64(1..=limit.min(3))),
        };
        let gold = (!settles && rng.u8(..5) == 0).then_some(limit * rng.u64(2..=4));
        let bans = !settles && algo != "P" && rng.u8(..6) == 0;
        let lasts = rng.u64(1000..=3000) * 1000;
        let ban = bans.then(|| Ban { after: rng.usize(1..=10), lasts });
        let of_all = rng.u8(..4) == 0;
        let (is_doubled, midnight, period, is_filter) = (false, 0, "day", false);
        Rule {
            name,
            scope,
            algo,
            unit,
            limit,
            gold,
            of_all,
            cost,
            ban,
            is_doubled,
            midnight,
            period,
            has_month_in_data: false,
            is_filter,
        }
    }

    /// A rule of one request a second for each account in the whole fleet.
    pub fn fleet(name: &str) -> Rule {
        Rule {
            name: name.into(),
            scope: Scope::Global,
            algo: "W",
            unit: SECOND,
            limit: 1,
            gold: None,
            of_all: false,
            cost: Cost::Plain(1),
            ban: None,
            is_doubled: false,
            midnight: 0,
            period: "day",
            has_month_in_data: false,
            is_filter: false,
        }
    }

    pub fn holds(&self) -> bool {
        self.algo == "LB"
    }

    /// Whether workers may lease permits of the rule.
    pub fn may_lease(&self) -> bool {
        ["W", "SW", "TB"].contains(&self.algo) && matches!(self.cost, Cost::Plain(_))
    }

    /// The largest limit that a caller may have.
    pub fn most(&self) -> u64 {
        self.gold.unwrap_or(0).max(self.limit) * if self.is_doubled { 2 } else { 1 }
    }

    /// Whether an operator can reset what a caller has used.
    pub fn can_be_reset(&self) -> bool {
        let algo = !["P", "LB"].contains(&self.algo);
        algo && self.scope != Scope::Local && !self.is_filter && self.ban.is_none()
    }

    /// The rule as the document has it, with limits `times` as high, and with permits of the document in place of each permit.
    pub fn text(&self, times: u64, permits: u64) -> String {
        let Rule { name, algo, .. } = self;
        // Requests at a time are no permits.
        let limit = |limit: u64| limit * times * if self.algo == "P" { 1 } else { permits };
        let actor = if self.of_all { "all" } else { "account" };
        let scope = match self.scope {
            Scope::Local => "local",
            Scope::Gateway => "gateway",
            Scope::Global => "global",
        };
        let unit = match self.unit {
            SECOND => "second",
            DAY => self.period,
            _ => "minute",
        };
        let (key, numbers) = match *algo {
            "P" => ("in_flight", format!("in_flight: {}", limit(self.limit))),
            _ => ("rpu", format!("unit: {unit}, rpu: {}, algo: {algo}", limit(self.limit))),
        };
        let cost = match self.cost {
            Cost::Plain(_) if *algo == "P" => String::new(),
            Cost::Plain(1) if permits == 1 => String::new(),
            Cost::Plain(cost) => format!(", cost: {}", cost * permits),
            Cost::QuestionResult { reserve, max, estimates } => {
                let (reserve, max) = (reserve * permits, max * permits);
                let reserve = estimates.map_or(reserve.to_string(), |most| {
                    format!("{{metadata: [sim, estimate], default: {reserve}, max: {most}}}")
                });
                format!(", cost: {{response: {{header: x-used}}, reserve: {reserve}, max: {max}}}")
            }
        };
        let month = match self.has_month_in_data {
            true => ", month_starts: {metadata: [sim, day], default: 1}",
            false => "",
        };
        let gold = self.gold.map_or(String::new(), |gold| {
            format!(
                ", plans: {{by: [{{header: x-plan}}], of: {{gold: {{{key}: {}}}}}}}",
                limit(gold)
            )
        });
        let ban = self.ban.map_or(String::new(), |Ban { after, lasts }| {
            format!(", ban: {{after: {after}, within: 1s, for: {}ms}}", lasts / 1000)
        });
        let filter = if self.is_filter { ", quota: {accounts: 1000, error: 0.0001}" } else { "" };
        format!(
            "{{name: {name}, actor: {actor}, {numbers}, scope: {scope}{cost}{gold}{ban}{filter}{month}}}"
        )
    }

    /// The rule's algorithm, as a single counter.
    pub fn counter(&self) -> Arc<dyn Algorithm> {
        let entry = REGISTRY.iter().find(|entry| entry.short == self.algo).expect("an algorithm");
        let unit = match self.unit {
            SECOND => Unit::Second,
            DAY => Unit::Day,
            _ => Unit::Minute,
        };
        let zone = Zone::ahead(ahead(self.midnight) as i32);
        let quota = Quota { cost: self.cost.max(), zone, ..Quota::new(unit, self.limit) };
        (entry.build)(&quota).expect("a quota")
    }
}

/// Seconds by which local time is ahead of UTC where a day ends at this instant of the world; zero is UTC.
pub fn ahead(midnight: Micros) -> u64 {
    if midnight == 0 { 0 } else { (DAY - (EPOCH + midnight) % DAY) / SECOND }
}
