//! `day_starts`, `week_starts` and `month_starts`, of a document or of a rule.

use super::advice::about::{About, Advised};
use super::conditions::PAYLOAD;
use super::fields::Fields;
use super::mapping::Allowed::{self, Choice, Either, Map, Text, Whole};
use super::mapping::{Choices, Mapping, mapping, optional, required, words};
use super::node::Node;
use super::rule::cost::{METADATA, TYPE, TYPES};
use super::rule::limit::source;
use super::values::{self, TEXT};
use diana_algorithm::entry;
use diana_policy::time::{DAY, Unit};
use diana_policy::tree::Tree;
use diana_policy::{NumberForm, NumberSource, Quota, Rule, Starts};

/// `day_starts`.
pub const DAY_STARTS: Allowed =
    Text("a time such as \"20:00\", from \"00:00\" to \"23:59\"", |text| second(text).is_some());

/// `week_starts`.
pub const WEEK_STARTS: Allowed = Choice(|| words(WEEKDAYS));

/// `month_starts`.
pub const MONTH_STARTS: Allowed = Either(&[Whole(1, Starts::LAST as u64), Map(&MONTH)]);

const WEEKDAYS: Choices<u8> = &[
    ("monday", 0),
    ("tuesday", 1),
    ("wednesday", 2),
    ("thursday", 3),
    ("friday", 4),
    ("saturday", 5),
    ("sunday", 6),
];

static MONTH: Mapping = mapping(
    "month_source",
    "a mapping such as `{jwt_claim: billing_day, payload: jwt, default: 1}`",
    &[
        optional("metadata", METADATA),
        optional("jwt_claim", TEXT),
        optional("payload", PAYLOAD),
        optional("payload_header", TEXT),
        optional("type", TYPE),
        required("default", Whole(1, Starts::LAST as u64)),
    ],
);

/// The starts of periods, and the source of the first day of a month, if requests contain it.
#[derive(Debug, Clone)]
pub struct PeriodStarts {
    /// The starts. The first day of a month is the default of the source.
    pub starts: Starts,
    /// The source in trusted data.
    pub month: Option<NumberSource>,
}

impl Default for PeriodStarts {
    fn default() -> PeriodStarts {
        PeriodStarts { starts: Starts::PLAIN, month: None }
    }
}

/// Reads the keys of a document or a rule. Those of `outer` hold where a key is absent.
pub fn read(fields: &Fields<'_>, outer: &PeriodStarts) -> PeriodStarts {
    let PeriodStarts { starts, month } = outer.clone();
    let day = fields.text("day_starts").and_then(second).unwrap_or(starts.day);
    let week = fields.choice("week_starts", WEEKDAYS).unwrap_or(starts.week);
    let (month_starts, month) = match fields.get("month_starts").map(Node::tree) {
        None => (Some(starts.month), month),
        Some(Tree::Map(_)) => {
            let source = month_source(fields);
            (source.as_ref().and_then(|source| source.default.try_into().ok()), source)
        }
        Some(_) => (fields.number("month_starts"), None),
    };
    let month_starts = month_starts.unwrap_or(starts.month);
    PeriodStarts { starts: Starts { day, week, month: month_starts }, month }
}

fn month_source(fields: &Fields<'_>) -> Option<NumberSource> {
    let node = fields.get("month_starts")?;
    let fields = fields.mapping("month_starts")?;
    let default = fields.number("default");
    let form = fields.choice("type", TYPES).unwrap_or(NumberForm::Number);
    Some(NumberSource { source: source(node, &fields)?, form, default: default? })
}

/// The seconds from midnight to a time such as `20:00`.
fn second(text: &str) -> Option<u32> {
    values::minutes(text).filter(|minutes| *minutes < 24 * 60).map(|minutes| minutes * 60)
}

/// A key, and the units of `W` that it concerns.
struct Concern {
    key: &'static str,
    concerns: fn(&Quota) -> bool,
    units: &'static str,
}

const CONCERNS: [Concern; 3] = [
    Concern { key: "day_starts", concerns: has_days, units: "a `unit` of whole days" },
    Concern {
        key: "week_starts",
        concerns: |quota| quota.unit == Unit::Week,
        units: "`unit: week`",
    },
    Concern {
        key: "month_starts",
        concerns: |quota| quota.unit.varies(),
        units: "`unit: month` or `unit: year`",
    },
];

fn has_days(quota: &Quota) -> bool {
    quota.unit.varies() || quota.period().is_multiple_of(DAY)
}

/// Reports keys of a rule that have no effect on its windows.
pub fn check(rule: &Fields<'_>, quota: &Quota, by_calendar: bool) {
    for Concern { key, concerns, units } in CONCERNS {
        if let (Some(node), false) = (rule.get(key), by_calendar && concerns(quota)) {
            node.key_problem(format!("requires `algo: W` and {units}"));
        }
    }
}

/// Keys of a document that concern none of its rules.
pub fn find_unused(about: &About<'_>) -> Vec<Advised> {
    let by_calendar = |rule: &Rule| entry(rule.algo).is_some_and(|entry| entry.by_calendar);
    let is_idle = |Concern { key, concerns, .. }: &&Concern| {
        let mut rules = about.rules().peekable();
        let has_rules = rules.peek().is_some();
        let is_used = rules.any(|rule| by_calendar(rule) && concerns(&rule.quota));
        has_rules && about.top.has(key) && !is_used
    };
    let idle = CONCERNS.iter().filter(is_idle).map(|Concern { key, units, .. }| {
        format!("`{key}` has no effect: no rule has `algo: W` and {units}")
    });
    idle.map(|message| (message, Vec::new())).collect()
}
