//! The declaration of every key, for readers, messages and the schema.

pub mod limits;

use super::headers::{MARKER, VALUE};
use super::mapping::Allowed::{
    Choice, Duration, Either, Flag, List, Map, Named, Size, Text, Whole,
};
use super::mapping::{Allowed, Choices, Mapping, MappingKey, mapping, optional, required, words};
use super::plans::NAMED_PLANS;
use super::starts::{DAY_STARTS, MONTH_STARTS, WEEK_STARTS};
use super::values::{CLUSTER, PIPE, VARIABLE, is_visible};
use super::{remote, settings};
use diana_policy::redis::MOST_SHARDS;
use diana_policy::redis::OnFailure;
use diana_policy::time::{DAY, SECOND};
use diana_policy::{FieldForm, OnFault};
use limits::{ENTRY, EXCEPT, SOURCES};

/// Any text.
pub const TEXT: Allowed = Text("text", |_| true);
/// A list of texts.
pub const TEXTS: Allowed = List("a list of texts", &TEXT);

/// The entries of a document.
pub const LIMITS: Allowed = List("a list of `{Url, rules}`; `[]` for no limits", &Map(&ENTRY));

/// A document. Remote documents have no keys of [`own`].
pub static DOCUMENT: Mapping = Mapping {
    name: "document",
    what: "a mapping such as `{limits: […]}`, or a list of `{Url, rules}`",
    keys: &[
        required("limits", LIMITS),
        optional("actors", Named("a mapping such as `{tenant: [{header: x-tenant}]}`", &SOURCES)),
        optional("except", Map(&EXCEPT)),
        optional("time_zone", TEXT),
        optional("day_starts", DAY_STARTS),
        optional("week_starts", WEEK_STARTS),
        optional("month_starts", MONTH_STARTS),
        optional("response", Map(&RESPONSE)),
        optional("shadow", Flag),
        optional("disabled", Flag),
        optional(
            "plans",
            Named(
                "a mapping such as `{tiers: {by: […], of: {gold: {rpu: 1000}}}}`",
                &Map(&NAMED_PLANS),
            ),
        ),
    ],
    more: own,
};

fn own() -> Vec<MappingKey> {
    vec![
        optional("namespace", settings::NAMESPACE),
        optional("keys", Whole(1, 10_000_000)),
        optional("log", Choice(|| words(LOGS))),
        optional("on_fault", Choice(|| words(ON_FAULTS))),
        optional("accepted", Map(&ACCEPTED)),
        optional("mark", MARKER),
        optional("redis", Map(&REDIS)),
        optional("remote", Map(&REMOTE)),
        optional("explain", Map(&EXPLAIN)),
        optional("admin", Map(&ADMIN)),
    ]
}

/// Whether refusals are logged.
pub const LOGS: Choices<bool> = &[("none", false), ("refused", true)];

/// What happens to a request after a fault of the dynamic module.
pub const ON_FAULTS: Choices<OnFault> = &[("pass", OnFault::Pass), ("refuse", OnFault::Refuse)];

static ACCEPTED: Mapping = mapping(
    "accepted",
    "a mapping such as `{headers: true, filter_state: true}`",
    &[optional("headers", Flag), optional("filter_state", Flag)],
);

static EXPLAIN: Mapping = mapping(
    "explain",
    "a mapping such as `{header: x-diana-explain, token_env: DIANA_TOKEN}`",
    &[required("header", MARKER), required("token_env", VARIABLE)],
);

static ADMIN: Mapping = mapping(
    "admin",
    "a mapping such as `{path: /.diana, token_env: DIANA_TOKEN}`",
    &[
        required("path", Text("a path such as `/.diana`, not `/` alone", |_| true)),
        required("token_env", VARIABLE),
    ],
);

pub static RESPONSE: Mapping = mapping(
    "response",
    "a mapping such as `{status: 429, body: slow down}`",
    &[
        optional("status", Whole(400, 599)),
        optional("body", TEXT),
        optional("content_type", VALUE),
        optional("headers", Named("a mapping such as `{x-reason: rate limit}`", &VALUE)),
        optional("problem", Flag),
        optional("jitter", Duration(0, 3600 * SECOND)),
        optional("fields", Choice(|| words(FIELDS))),
        optional("reset", Choice(|| words(RESETS))),
        optional("grpc_status", Whole(8, 14)),
    ],
);

/// The response fields that contain limits.
pub const FIELDS: Choices<FieldForm> = &[
    ("ietf", FieldForm::Ietf),
    ("x-ratelimit", FieldForm::XRateLimit),
    ("legacy", FieldForm::Legacy),
];
/// Whether the reset in these fields is a Unix time.
pub const RESETS: Choices<bool> = &[("seconds", false), ("unix", true)];

static REDIS: Mapping = mapping(
    "redis",
    "a mapping such as `{cluster: diana_redis}`",
    &[
        // Required, except for the dynamic module with a pipe.
        optional("cluster", CLUSTER),
        optional("pipe", PIPE),
        optional("timeout", Duration(SECOND / 1000, SECOND)),
        optional("on_failure", ON_FAILURE),
        optional("username_env", VARIABLE),
        optional("password_env", VARIABLE),
        optional("password_secret", Map(&SECRET)),
        // Redis has 16 by default, a cluster 1.
        optional("db", Whole(0, 65_535)),
        optional("proxied", Flag),
        optional("parts", Whole(1, MOST_SHARDS as u64)),
        optional("gateways", Whole(1, 10_000)),
    ],
);

static SECRET: Mapping = mapping(
    "password_secret",
    "a mapping such as `{name: redis_password}`",
    &[required("name", SECRET_NAME), optional("sds", SOURCE)],
);

const SECRET_NAME: Allowed = Text("the name of a secret of Envoy", |text| !text.is_empty());
const SOURCE: Allowed =
    Text("a ConfigSource of Envoy as JSON, such as `'{\"ads\": {}}'`", |text| {
        text.starts_with('{') && text.ends_with('}')
    });

/// The behaviour of rules while Redis is unavailable.
pub const ON_FAILURES: Choices<OnFailure> =
    &[("gateway", OnFailure::Gateway), ("allow", OnFailure::Allow), ("deny", OnFailure::Deny)];
pub const ON_FAILURE: Allowed = Choice(|| words(ON_FAILURES));

static REMOTE: Mapping = mapping(
    "remote",
    "a mapping such as `{cluster: config_centre, path: /diana.yaml}`",
    &[
        required("cluster", CLUSTER),
        optional(
            "authority",
            Text("a host such as config.example.com, up to 255 visible ASCII characters", |text| {
                is_visible(text, 255)
            }),
        ),
        required("path", remote::PATH),
        optional("method", Choice(|| words(METHODS))),
        optional("headers", Named("a mapping such as `{x-token: {env: DIANA_TOKEN}}`", &HEADER)),
        optional("body", TEXT),
        optional("every", Duration(SECOND, DAY)),
        optional("timeout", Duration(SECOND / 100, 30 * SECOND)),
        optional("value", remote::POINTER),
        optional("base64", Flag),
        optional("max_size", Size(16 << 20)),
    ],
);

/// HTTP methods of requests to a configuration server.
pub const METHODS: Choices<&str> = &[("GET", "GET"), ("POST", "POST")];

/// A header's value, possibly from the environment.
pub const HEADER: Allowed = Either(&[VALUE, Map(&FROM_ENVIRONMENT)]);
static FROM_ENVIRONMENT: Mapping =
    mapping("variable", "a mapping such as `{env: DIANA_TOKEN}`", &[required("env", VARIABLE)]);
