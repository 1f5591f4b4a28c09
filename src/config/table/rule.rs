//! A rule.

use super::limits::{EXCEPT, PAYLOAD, SOURCES};
use super::{ON_FAILURE, RESPONSE, TEXT, TEXTS};
use crate::headers::{MARKER, NAME as HEADER};
use crate::mapping::Allowed::{
    Choice, Duration, Either, Flag, Fraction, List, Map, Named, Size, Text, Whole,
};
use crate::mapping::{Allowed, Choices, Mapping, MappingKey, mapping, optional, required, words};
use crate::rule::quota;
use crate::values::NAME;
use diana_algorithm::{Form, REGISTRY, Setting};
use diana_policy::time::{DAY, SECOND, Unit};
use diana_policy::{Absent, MAX_PERMITS, Scope};

/// A rule.
pub static RULE: Mapping = Mapping {
    name: "rule",
    what: "a mapping such as `{actor: device, unit: second, rpu: 10}`",
    keys: &[
        required("actor", Either(&[TEXT, TEXTS])),
        // Required without `in_flight`, like `rpu`.
        optional(
            "unit",
            Either(&[Choice(|| words(&Unit::ALL)), Duration(Unit::SHORTEST, Unit::LONGEST)]),
        ),
        optional("rpu", Either(&[Whole(0, MAX_PERMITS), Map(&LIMIT)])),
        optional("algo", Choice(|| REGISTRY.iter().flat_map(|it| [it.short, it.long]).collect())),
        optional("scope", Choice(|| words(SCOPES))),
        optional("name", NAME),
        optional("cost", Either(&[Whole(1, MAX_PERMITS), Map(&COST), SETTLED_COST])),
        optional("absent", Choice(|| words(ABSENTS))),
        optional("enforce", Whole(0, 100)),
        optional("shadow", Flag),
        optional("expose", Flag),
        optional("except", Map(&EXCEPT)),
        optional("response", Map(&RESPONSE)),
        optional("ban", Map(&BAN)),
        optional("quota", Map(&QUOTA)),
        optional("hot", Map(&HOT)),
        optional("count", Map(&COUNT)),
        optional("in_flight", IN_FLIGHT),
        optional("near", Whole(1, 99)),
        optional("plans", PLANS),
        optional("on_failure", ON_FAILURE),
    ],
    more: || of_algorithms(|_| true),
};

/// The scopes of a rule.
pub const SCOPES: Choices<Scope> =
    &[("local", Scope::Local), ("gateway", Scope::Gateway), ("global", Scope::Global)];

/// The treatment of requests without the actor.
pub const ABSENTS: Choices<Absent> =
    &[("skip", Absent::Skip), ("share", Absent::Share), ("deny", Absent::Deny)];

const IN_FLIGHT: Allowed = Whole(1, 1_000_000);

/// The keys of all algorithms, without duplicates.
fn of_algorithms(is_wanted: fn(&Setting) -> bool) -> Vec<MappingKey> {
    let mut keys: Vec<MappingKey> = Vec::new();
    for setting in REGISTRY.iter().flat_map(|entry| entry.keys).filter(|it| is_wanted(it)) {
        if keys.iter().all(|key| key.name != setting.name) {
            keys.push(optional(setting.name, allowed_by(setting)));
        }
    }
    keys
}

/// The allowed values of an algorithm's key.
pub fn allowed_by(setting: &Setting) -> Allowed {
    match setting.form {
        Form::Number => Whole(setting.min, setting.max),
        Form::Duration => Duration(setting.min, setting.max),
    }
}

/// Whether a number is written as text.
pub const TYPES: Choices<bool> = &[("number", false), ("text", true)];
const TYPE: Allowed = Choice(|| words(TYPES));
const METADATA: Allowed = List("a list of a namespace and at least one key", &TEXT);

static LIMIT: Mapping = mapping(
    "limit",
    "a mapping such as `{metadata: [plans, rpu], default: 10, max: 5000}`",
    &[
        optional("metadata", METADATA),
        optional("jwt_claim", TEXT),
        optional("payload", PAYLOAD),
        optional("type", TYPE),
        required("default", Whole(0, MAX_PERMITS)),
        required("max", Whole(1, MAX_PERMITS)),
    ],
);

static COST: Mapping = mapping(
    "cost",
    "a mapping such as `{header: x-cost, default: 1, max: 1000}`",
    &[
        optional("header", HEADER),
        optional("metadata", METADATA),
        optional("type", TYPE),
        optional("default", Whole(1, MAX_PERMITS)),
        required("max", Whole(1, MAX_PERMITS)),
    ],
);

/// A cost that the response reports.
pub const SETTLED_COST: Allowed = Map(&SETTLED);
static SETTLED: Mapping = mapping(
    "settled_cost",
    "a mapping such as `{response: {header: x-tokens-used}, reserve: 500, max: 20000}`",
    &[
        required("response", Map(&ANSWERED)),
        optional("reserve", Whole(0, MAX_PERMITS)),
        required("max", Whole(0, MAX_PERMITS)),
        optional("missing", Either(&[Choice(|| words(MISSING)), Whole(0, MAX_PERMITS)])),
    ],
);

/// Whether a missing usage counts as the reservation instead of the maximum.
pub const MISSING: Choices<bool> = &[("max", false), ("reserve", true)];

static ANSWERED: Mapping = mapping(
    "told",
    "a mapping such as `{header: x-tokens-used}` or `{metadata: [namespace, key]}`",
    &[
        optional("header", HEADER),
        optional("metadata", METADATA),
        optional("typed", Flag),
        optional("type", TYPE),
    ],
);

static COUNT: Mapping = mapping(
    "count",
    "a mapping such as `{status: [401, 403, 5xx]}`",
    &[
        optional("status", List("a list such as `[401, 5xx]`", &STATUS)),
        optional("details", List("a list of reasons such as `[jwt_authn_access_denied]`", &TEXT)),
        optional("failed", Flag),
    ],
);
const STATUS: Allowed =
    Either(&[Whole(100, 599), Choice(|| vec!["1xx", "2xx", "3xx", "4xx", "5xx"])]);

/// The shortest duration is the time in which refusals reach the other workers.
static BAN: Mapping = mapping(
    "ban",
    "a mapping such as `{after: 10, within: 1m, for: 5m, max: 1h}`",
    &[
        required("after", Whole(1, 1_000_000)),
        required("within", Duration(SECOND / 10, DAY)),
        required("for", Duration(SECOND / 10, 30 * DAY)),
        optional("max", Duration(SECOND / 10, 30 * DAY)),
        optional("halve_after", Duration(SECOND / 10, 30 * DAY)),
        optional("on", Choice(|| words(ON))),
    ],
);

/// Whether a ban counts outcomes instead of refusals.
pub const ON: Choices<bool> = &[("refused", false), ("counted", true)];

static QUOTA: Mapping = mapping(
    "quota",
    "a mapping such as `{accounts: 1000000, error: 0.01}`",
    &[
        required("accounts", Whole(1, 1_000_000_000)),
        optional(
            "error",
            Fraction(
                "the probability that an account is refused too early, 0.0001 … 0.1, such as `0.01`",
                100,
                100_000,
            ),
        ),
        optional("memory", Size(quota::MAX_BYTES)),
    ],
);

static HOT: Mapping = mapping(
    "hot",
    "a mapping such as `{over: 1000, per: 10s, header: x-hot-key}`",
    &[
        required("over", Whole(1, 1_000_000_000)),
        // A shorter period would end before the workers have exchanged their counts.
        required("per", Duration(SECOND, 3600 * SECOND)),
        optional("header", MARKER),
        optional("top", Whole(1, 100)),
        optional("reveal", Flag),
    ],
);

/// `plans` of a rule.
pub const PLANS: Allowed =
    Either(&[Map(&NAMED_PLANS), Text("a name of the top-level `plans`", |_| true)]);
/// `plans` with a name at the top.
pub static NAMED_PLANS: Mapping = mapping(
    "plans",
    "a mapping such as `{by: […], of: {gold: {rpu: 1000}, free: {rpu: 10}}}`",
    &[
        optional("by", SOURCES),
        required(
            "of",
            Named(
                "a mapping such as `{gold: {rpu: 1000}, free: {rpu: 10}, internal: unlimited}`",
                &PLAN,
            ),
        ),
    ],
);

/// A plan.
pub const PLAN: Allowed = Either(&[Choice(|| vec!["unlimited"]), Map(&NUMBERS)]);
static NUMBERS: Mapping = Mapping {
    name: "plan",
    what: "a mapping such as `{rpu: 1000, burst: 2000}`",
    keys: &[
        optional("rpu", Whole(0, MAX_PERMITS)),
        optional("in_flight", IN_FLIGHT),
        optional("cost", Map(&RESERVE)),
    ],
    more: || of_algorithms(|setting| setting.by_plan),
};
static RESERVE: Mapping = mapping(
    "reserve",
    "a mapping such as `{reserve: 100}`",
    &[required("reserve", Whole(1, MAX_PERMITS))],
);
