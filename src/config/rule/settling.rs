//! Settlement at the end of a request: `cost.response` and `count` of a rule.

use super::ban;
use super::cost::{METADATA, TYPE, TYPES};
use crate::fields::Fields;
use crate::headers::NAME as HEADER;
use crate::mapping::Allowed::{self, Choice, Either, Flag, List, Map, Whole};
use crate::mapping::{Choices, Mapping, mapping, optional, required, words};
use crate::node::Node;
use crate::table::TEXT;
use diana_algorithm::{Entry, REGISTRY};
use diana_policy::MAX_PERMITS;
use diana_policy::tree::Tree;
use diana_policy::{NumberForm, Outcomes, Quota, ResponseCost, ResponseSource, Settling};

/// A cost that the response reports.
pub const SETTLED_COST: Allowed = Map(&SETTLED);

static SETTLED: Mapping = mapping(
    "settled_cost",
    "a mapping such as `{response: {header: x-tokens-used}, reserve: 500, max: 20000}`",
    &[
        required("response", Map(&ANSWERED)),
        optional("reserve", Whole(0, MAX_PERMITS)),
        required("max", Whole(0, MAX_PERMITS)),
        optional("missing", ESTIMATE),
        optional("error", ESTIMATE),
    ],
);

const ESTIMATE: Allowed = Either(&[Choice(|| words(ESTIMATES)), Whole(0, MAX_PERMITS)]);

/// Whether an unknown usage counts as the reservation instead of the maximum.
pub const ESTIMATES: Choices<bool> = &[("max", false), ("reserve", true)];

static ANSWERED: Mapping = mapping(
    "usage_source",
    "a mapping such as `{header: x-tokens-used}` or `{metadata: [namespace, key]}`",
    &[
        optional("header", HEADER),
        optional("metadata", METADATA),
        optional("typed", Flag),
        optional("type", TYPE),
    ],
);

pub(super) static COUNT: Mapping = mapping(
    "count",
    "a mapping such as `{status: [401, 403, 5xx]}`",
    &[
        optional("status", List("a list such as `[401, 5xx]`", &STATUSES)),
        optional("details", List("a list of reasons such as `[jwt_authn_access_denied]`", &TEXT)),
        optional("failed", Flag),
    ],
);

const STATUSES: Allowed =
    Either(&[Whole(100, 599), Choice(|| vec!["1xx", "2xx", "3xx", "4xx", "5xx"])]);

const STATUS: &str = "a status such as 401, or a class such as 5xx";

/// Reads a `cost` with the usage in the response. Returns the reservation and the source of the
/// usage.
pub fn cost(node: &Node<'_>) -> Option<(u64, ResponseCost)> {
    let fields = Fields::read(node, &SETTLED_COST)?;
    let most = fields.number("max");
    let limit = most.unwrap_or(u64::MAX);
    let reserve = match fields.has("reserve") {
        true => fields.number_up_to("reserve", limit),
        false => Some(1),
    };
    let estimate = |key, default| match fields.get(key).map(Node::tree) {
        None => default,
        Some(Tree::Int(_)) => fields.number_up_to(key, limit),
        Some(_) => fields
            .choice(key, ESTIMATES)
            .and_then(|is_reserve| if is_reserve { reserve } else { most }),
    };
    let (missing, error) = (estimate("missing", most), estimate("error", Some(0)));
    let source = usage_source(&fields);
    let (reserve, most) = (reserve?, most?);
    let response = ResponseCost { source: source?, most, missing: missing?, error: error? };
    Some((reserve, response))
}

/// The source of the usage in the response. Exactly one must be given.
fn usage_source(cost: &Fields<'_>) -> Option<ResponseSource> {
    let fields = cost.mapping("response")?;
    let typed = fields.flag("typed", false);
    let is_text = fields.choice("type", TYPES).unwrap_or(false);
    let (kind, node) = fields.only_one_of(&["header", "metadata"])?;
    if kind == "header" {
        for node in ["typed", "type"].iter().filter_map(|key| fields.get(key)) {
            node.key_problem("requires `metadata`".into());
        }
        return fields.text("header").map(|name| ResponseSource::Header(name.to_ascii_lowercase()));
    }
    let form = match (typed, is_text) {
        (false, false) => NumberForm::Number,
        (true, false) => NumberForm::Typed,
        (typed, true) => NumberForm::Text { typed },
    };
    let allowed = fields.allowed("metadata");
    let names = node.children();
    let path: Vec<String> =
        names.iter().filter_map(|name| name.text(&allowed)).map(Into::into).collect();
    let usable = |name: &String| !name.is_empty() && !name.contains('\0');
    if path.len() < 2 || !path.iter().all(usable) {
        node.reject(allowed);
        return None;
    }
    Some(ResponseSource::Metadata { path, form })
}

/// Reads the settlement of a rule, after its `cost`.
pub fn read(
    rule: &Fields<'_>,
    response: Option<(u64, ResponseCost)>,
    cost: u64,
) -> Option<Settling> {
    let count = count(rule);
    if response.is_none() && count.is_none() {
        return None;
    }
    let (reserve, response_cost) =
        response.map_or((cost, None), |(reserve, response_cost)| (reserve, Some(response_cost)));
    let bans = ban::is_by_outcome(rule);
    Some(Settling { reserve, response_cost, count, bans, is_slot: false })
}

/// Reports a settlement that the algorithm does not support.
pub fn check(rule: &Fields<'_>, quota: &Quota, entry: &Entry) {
    if !(entry.capabilities)(quota).settles {
        let key = if rule.get("count").is_some() { "count" } else { "cost" };
        let able = REGISTRY.iter().filter(|entry| (entry.capabilities)(quota).settles);
        let able: Vec<_> =
            able.map(|entry| format!("`algo: {}` ({})", entry.short, entry.long)).collect();
        let message = format!(
            "is settled when the request ends, which `algo: {}`{} does not support; allowed: {}",
            entry.short,
            if rule.get("algo").is_some() { "" } else { ", the default," },
            able.join(", ")
        );
        rule.report(key, message);
    }
}

fn count(rule: &Fields<'_>) -> Option<Outcomes> {
    let fields = rule.mapping("count")?;
    let (statuses, details) = (fields.list("status"), fields.list("details"));
    let failed = fields.flag("failed", false);
    let statuses: Vec<_> = statuses?.iter().map(status).collect();
    let allowed = fields.allowed("details");
    let details: Vec<_> = details?.iter().map(|item| item.text(&allowed).map(Into::into)).collect();
    let outcomes = Outcomes {
        statuses: statuses.into_iter().collect::<Option<_>>()?,
        details: details.into_iter().collect::<Option<_>>()?,
        failed,
    };
    if outcomes == Outcomes::default() {
        let allowed = rule.allowed("count");
        rule.report("count", format!("found no outcome, allowed: {allowed}"));
        return None;
    }
    Some(outcomes)
}

/// A status, or the range of a class.
fn status(node: &Node<'_>) -> Option<(u16, u16)> {
    let found = match node.tree() {
        Tree::Int(status) => u16::try_from(*status).ok().map(|status| (status, status)),
        Tree::Text(text) => text
            .strip_suffix("xx")
            .and_then(|class| class.parse::<u16>().ok())
            .filter(|class| (1..=5).contains(class))
            .map(|class| (class * 100, class * 100 + 99)),
        _ => None,
    };
    let found = found.filter(|(first, _): &(u16, u16)| (100..600).contains(first));
    if found.is_none() {
        node.reject(STATUS);
    }
    found
}
