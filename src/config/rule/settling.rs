//! Settlement at the end of a request: `cost.response` and `count` of a rule.

use super::ban;
use super::cost::{self, Cost, METADATA, TYPE, TYPES};
use crate::fields::Fields;
use crate::headers::NAME as HEADER;
use crate::mapping::Allowed::{self, Choice, Either, Flag, List, Map, Number, Whole};
use crate::mapping::{Choices, Mapping, mapping, optional, required, words};
use crate::native;
use crate::node::Node;
use crate::values::{self, TEXT};
use diana_algorithm::{Entry, REGISTRY};
use diana_policy::MAX_PERMITS;
use diana_policy::tree::Tree;
use diana_policy::{CostSource, NumberForm, NumberSource, Outcomes, Quota};
use diana_policy::{ResponseCost, ResponseSource, Settling, Term};

/// A cost that the response reports.
pub const SETTLED_COST: Allowed = Map(&SETTLED);

static SETTLED: Mapping = mapping(
    "settled_cost",
    "a mapping such as `{response: {header: x-tokens-used}, reserve: 500, max: 20000}`",
    &[
        required("response", Map(&ANSWERED)),
        optional("reserve", Either(&[Whole(0, MAX_PERMITS), Map(&ESTIMATED)])),
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
        optional("trailer", HEADER),
        optional("metadata", METADATA),
        optional("typed", Flag),
        optional("type", TYPE),
        optional("bytes", Choice(|| words(BYTES))),
        optional("duration", Flag),
        optional("times", Number),
        optional("sum", List(SUM, &Map(&ANSWERED))),
    ],
);

const SUM: &str = "a list of 1 … 8 sources such as `[{metadata: [usage, input]}, {metadata: [usage, output], times: 4}]`";

/// Maximum number of sources in a sum.
const MOST_TERMS: usize = 8;

const TIMES: &str =
    "a number of at most nine decimals, 0.000000001 … 1000, or negative for what is subtracted";

const BYTES: Choices<ResponseSource> =
    &[("request", ResponseSource::RequestBytes), ("response", ResponseSource::ResponseBytes)];

/// The permits to reserve, in the request, or in metadata of a filter before Diana.
static ESTIMATED: Mapping = mapping(
    "reserve_source",
    "a mapping such as `{header: x-estimate, default: 500, max: 20000}`",
    &[
        optional("header", HEADER),
        optional("query", TEXT),
        optional("metadata", METADATA),
        optional("typed", Flag),
        optional("type", TYPE),
        required("default", Whole(1, MAX_PERMITS)),
        required("max", Whole(1, MAX_PERMITS)),
    ],
);

pub(super) static COUNT: Mapping = mapping(
    "count",
    "a mapping such as `{status: [401, 403, 5xx]}`",
    &[
        optional("status", List("a list such as `[401, 5xx]`", &STATUSES)),
        optional("details", List("a list of reasons such as `[jwt_authn_access_denied]`", &TEXT)),
        optional(
            "grpc_status",
            List("a list of statuses of gRPC such as `[7, 16]`", &Whole(0, LAST_GRPC)),
        ),
        optional("failed", Flag),
    ],
);

/// The last status of gRPC (unauthenticated).
const LAST_GRPC: u64 = 16;

const STATUSES: Allowed =
    Either(&[Whole(100, 599), Choice(|| vec!["1xx", "2xx", "3xx", "4xx", "5xx"])]);

const STATUS: &str = "a status such as 401, or a class such as 5xx";

/// Reads a `cost` with the usage in the response.
pub fn cost(node: &Node<'_>) -> Option<Cost> {
    let fields = Fields::read(node, &SETTLED_COST)?;
    let most = fields.number("max");
    let limit = most.unwrap_or(u64::MAX);
    // The permits to reserve, at most, and their source, if requests contain them.
    let reserve = match fields.get("reserve").map(Node::tree) {
        None => Some((1, None)),
        Some(Tree::Map(_)) => estimated(&fields, limit).map(|(most, told)| (most, Some(told))),
        Some(_) => fields.number_up_to("reserve", limit).map(|reserve| (reserve, None)),
    };
    let estimate = |key, default| match fields.get(key).map(Node::tree) {
        None => default,
        Some(Tree::Int(_)) => fields.number_up_to(key, limit),
        Some(_) => match (fields.choice(key, ESTIMATES)?, &reserve) {
            (false, _) => most,
            (true, Some((_, Some(_)))) => {
                let message = "not allowed with a `reserve` that is read from data; write a number";
                fields.report(key, message.into());
                None
            }
            (true, reserve) => reserve.as_ref().map(|(reserve, _)| *reserve),
        },
    };
    let (missing, error) = (estimate("missing", most), estimate("error", Some(0)));
    let terms = fields.mapping("response").as_ref().and_then(terms);
    let ((reserve, cost_source), most) = (reserve?, most?);
    let response = ResponseCost { terms: terms?, most, missing: missing?, error: error? };
    let usual = cost_source.as_ref().map_or(reserve, |told| told.default);
    let cost_source = cost_source.map(CostSource::Number);
    Some(Cost { most: reserve.max(1), cost_source, response: Some((usual, response)) })
}

/// The most permits to reserve, and their source in the request.
fn estimated(cost: &Fields<'_>, limit: u64) -> Option<(u64, NumberSource)> {
    let fields = cost.mapping("reserve")?;
    let most = fields.number_up_to("max", limit);
    let default = fields.number_up_to("default", most.unwrap_or(limit));
    if let Some(node) = fields.get("metadata") {
        check_native(&fields, node);
    }
    let number = cost::number(&fields, default)?;
    Some((most?, number))
}

/// The encoding of a number in metadata.
fn form(fields: &Fields<'_>) -> NumberForm {
    let typed = fields.flag("typed", false);
    match fields.choice("type", TYPES).unwrap_or(NumberForm::Number) {
        NumberForm::Text { .. } => NumberForm::Text { typed },
        _ if typed => NumberForm::Typed,
        _ => NumberForm::Number,
    }
}

/// The usage in a response: one number, or the sum of several.
fn terms(fields: &Fields<'_>) -> Option<Vec<Term>> {
    let sum = fields.get("sum");
    let terms = match sum {
        Some(node) => summed(fields, node)?,
        None => vec![term(fields)?],
    };
    if terms.iter().all(|term| term.weight < 0) {
        let message =
            "adds nothing, so every request is free; allowed: at least one `times` above 0";
        sum.or_else(|| fields.get("times"))?.problem(message.into());
        return None;
    }
    Some(terms)
}

/// The terms of a sum.
fn summed(fields: &Fields<'_>, node: &Node<'_>) -> Option<Vec<Term>> {
    let others = fields.pairs().iter().filter(|(key, _)| *key != "sum");
    let others = others.map(|(_, node)| node.key_problem("not allowed with `sum`".into()));
    let is_alone = others.count() == 0;
    let items = fields.list("sum")?;
    if !(1..=MOST_TERMS).contains(&items.len()) {
        node.problem(format!("found {} sources, allowed: {SUM}", items.len()));
        return None;
    }
    let terms = items.iter().map(|item| {
        let fields = Fields::read(item, &Map(&ANSWERED))?;
        if let Some(sum) = fields.get("sum") {
            sum.key_problem("not allowed within a `sum`".into());
            return None;
        }
        term(&fields)
    });
    // Collects all of them first, so that each reports its problems.
    let terms: Vec<_> = terms.collect();
    let terms = terms.into_iter().collect::<Option<Vec<Term>>>()?;
    let is_header = |term: &Term| matches!(term.source, ResponseSource::Header(_));
    if terms.iter().any(is_header) && !terms.iter().all(is_header) {
        let message = "headers are read when the response begins, and other sources at its end; allowed: one of both";
        node.problem(message.into());
        return None;
    }
    let is_trailer = |term: &Term| matches!(term.source, ResponseSource::Trailer(_));
    if terms.iter().any(is_trailer) && !terms.iter().all(is_trailer) {
        let message = "trailers are read when they arrive, and other sources after that; allowed: one of both";
        node.problem(message.into());
        return None;
    }
    is_alone.then_some(terms)
}

/// A number with its weight. Exactly one source must be given.
fn term(fields: &Fields<'_>) -> Option<Term> {
    let (kind, node) =
        fields.only_one_of(&["header", "trailer", "metadata", "bytes", "duration"])?;
    if kind != "metadata" {
        for node in ["typed", "type"].iter().filter_map(|key| fields.get(key)) {
            node.key_problem("requires `metadata`".into());
        }
    }
    let weight = times(fields);
    let source = match kind {
        "header" => ResponseSource::Header(fields.text("header")?.to_ascii_lowercase()),
        "trailer" => ResponseSource::Trailer(fields.text("trailer")?.to_ascii_lowercase()),
        "bytes" => node
            .choice(&words(BYTES), &fields.allowed("bytes"))
            .and_then(|chosen| BYTES.get(chosen).map(|(_, source)| source.clone()))?,
        "duration" if node.boolean()? => ResponseSource::Duration,
        "duration" => {
            node.reject("true");
            return None;
        }
        _ => metadata_source(fields, node)?,
    };
    Some(Term { source, weight: weight? })
}

/// Reports metadata that the native module cannot read.
fn check_native(fields: &Fields<'_>, node: &Node<'_>) {
    if let Some(typed) = fields.get("typed").filter(|node| *node.tree() == Tree::Bool(true)) {
        typed.native_problem(native::TYPED);
    }
    native::check_metadata(node);
}

fn metadata_source(fields: &Fields<'_>, node: &Node<'_>) -> Option<ResponseSource> {
    check_native(fields, node);
    let form = form(fields);
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

/// The weight of a number in billionths.
fn times(fields: &Fields<'_>) -> Option<i64> {
    let Some(node) = fields.get("times") else { return Some(Term::ONE) };
    let found = match node.tree() {
        Tree::Int(number) => i64::try_from(*number).ok().and_then(|it| it.checked_mul(Term::ONE)),
        Tree::Number(text) => billionths(text),
        _ => None,
    };
    let is_weight =
        |weight: &i64| (1..=Term::HEAVIEST.unsigned_abs()).contains(&weight.unsigned_abs());
    let weight = found.filter(is_weight);
    if weight.is_none() {
        node.reject(TIMES);
    }
    weight
}

/// A decimal number in billionths, if it has no more digits. Programs that write JSON spell small
/// numbers with an exponent.
fn billionths(text: &str) -> Option<i64> {
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number: i128 = format!("{whole}{part}").parse().ok()?;
    let decimals = i32::try_from(part.len()).ok()?.checked_sub(power.parse().ok()?)?;
    let factor = 10_i128.checked_pow(decimals.checked_sub(9)?.unsigned_abs())?;
    let found = if decimals <= 9 {
        number.checked_mul(factor)?
    } else {
        (number % factor == 0).then_some(number / factor)?
    };
    found.try_into().ok()
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
    let grpc_statuses = fields.list("grpc_status");
    let failed = fields.flag("failed", false);
    let statuses: Vec<_> = statuses?.iter().map(status).collect();
    let allowed = fields.allowed("details");
    let details: Vec<_> = details?.iter().map(|item| item.text(&allowed).map(Into::into)).collect();
    let grpc_statuses: Vec<_> = grpc_statuses?.iter().map(grpc_status).collect();
    let outcomes = Outcomes {
        statuses: statuses.into_iter().collect::<Option<_>>()?,
        details: details.into_iter().collect::<Option<_>>()?,
        grpc_statuses: grpc_statuses.into_iter().collect::<Option<_>>()?,
        failed,
    };
    if outcomes == Outcomes::default() {
        let allowed = rule.allowed("count");
        rule.report("count", format!("found no outcome, allowed: {allowed}"));
        return None;
    }
    Some(outcomes)
}

/// A status of gRPC.
fn grpc_status(node: &Node<'_>) -> Option<u8> {
    values::number(node, &Whole(0, LAST_GRPC))?.try_into().ok()
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
