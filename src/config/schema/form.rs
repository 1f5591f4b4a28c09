//! What the values of keys look like. What else must hold of them a schema need not say: the readers do.

use super::reference;
use crate::response;
use diana_core::algorithm::{self, REGISTRY};
use diana_core::policy::MAX_PERMITS;
use diana_core::time::{DURATIONS, Unit};
use serde_json::{Value, json};

/// What a value looks like.
pub enum Form {
    /// Text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number, whole or not.
    Number,
    /// A duration such as `90s`, or 0.
    Duration,
    /// A size such as `64KiB`.
    Size,
    /// One of some words.
    Word(&'static [&'static str]),
    /// The name of a unit, or a duration.
    Unit,
    /// The names of the algorithms.
    Algorithm,
    /// One of the mappings.
    Mapping(&'static str),
    /// A list.
    List(&'static Form),
    /// A mapping with names of the operator's own.
    Named(&'static Form),
    /// One of several.
    Either(&'static [Form]),
}

use Form::{
    Algorithm, Duration, Either, Flag, List, Mapping, Named, Number, Size, Text, Whole, Word,
};

const NUMBER: &[&str] = &["number", "text"];
const BLOCKS: Form = Either(&[Mapping("match"), List(&Mapping("match"))]);
const TESTS: Form = Named(&Either(&[Text, Mapping("test")]));
const TEXTS: Form = List(&Text);

/// What each key of a mapping may be; of those that stand here nowhere, anything.
pub const FORMS: &[(&str, &str, Form)] = &[
    ("document", "limits", List(&Mapping("entry"))),
    ("document", "actors", Named(&List(&Mapping("source")))),
    ("document", "except", Mapping("except")),
    ("document", "time_zone", Text),
    ("document", "response", Mapping("response")),
    ("document", "shadow", Flag),
    ("document", "namespace", Text),
    ("document", "keys", Whole(1, 10_000_000)),
    ("document", "log", Word(&["none", "refused"])),
    ("document", "accepted", Mapping("accepted")),
    ("document", "mark", Text),
    ("document", "redis", Mapping("redis")),
    ("document", "remote", Mapping("remote")),
    ("entry", "Url", Either(&[Text, TEXTS])),
    ("entry", "url", Either(&[Text, TEXTS])),
    ("entry", "rules", List(&Mapping("rule"))),
    ("entry", "match", BLOCKS),
    ("entry", "unless", BLOCKS),
    ("entry", "except", Mapping("except")),
    ("entry", "response", Mapping("response")),
    ("entry", "ignore_case", Flag),
    ("match", "methods", TEXTS),
    ("match", "hosts", TEXTS),
    ("match", "headers", TESTS),
    ("match", "query", TESTS),
    ("match", "cookies", TESTS),
    ("match", "addresses", TEXTS),
    ("match", "metadata", Named(&TESTS)),
    ("match", "claims", Mapping("claims")),
    ("claims", "payload", Text),
    ("claims", "values", TESTS),
    ("test", "exact", Text),
    ("test", "prefix", Text),
    ("test", "suffix", Text),
    ("test", "contains", Text),
    ("test", "in", TEXTS),
    ("test", "present", Flag),
    ("test", "not", Text),
    ("rule", "actor", Either(&[Text, TEXTS])),
    ("rule", "unit", Form::Unit),
    ("document", "plans", Named(&Mapping("plans"))),
    ("rule", "rpu", Either(&[Whole(0, MAX_PERMITS), Mapping("limit")])),
    ("rule", "plans", Either(&[Text, Mapping("plans")])),
    ("limit", "metadata", TEXTS),
    ("limit", "jwt_claim", Text),
    ("limit", "payload", Text),
    ("limit", "type", Word(NUMBER)),
    ("limit", "default", Whole(0, MAX_PERMITS)),
    ("limit", "max", Whole(1, MAX_PERMITS)),
    ("plans", "by", List(&Mapping("source"))),
    ("plans", "of", Named(&Either(&[Word(&["unlimited"]), Mapping("plan")]))),
    ("plan", "rpu", Whole(0, MAX_PERMITS)),
    ("plan", "in_flight", Whole(1, 1_000_000)),
    ("plan", "cost", Mapping("reserve")),
    ("reserve", "reserve", Whole(1, MAX_PERMITS)),
    ("rule", "algo", Algorithm),
    ("rule", "scope", Word(&["local", "gateway", "global"])),
    ("rule", "name", Text),
    ("rule", "cost", Either(&[Whole(1, MAX_PERMITS), Mapping("cost"), Mapping("settled_cost")])),
    ("rule", "absent", Word(&["skip", "share", "deny"])),
    ("rule", "enforce", Whole(0, 100)),
    ("rule", "shadow", Flag),
    ("rule", "expose", Flag),
    ("rule", "except", Mapping("except")),
    ("rule", "response", Mapping("response")),
    ("rule", "ban", Mapping("ban")),
    ("rule", "quota", Mapping("quota")),
    ("rule", "hot", Mapping("hot")),
    ("rule", "count", Mapping("count")),
    ("rule", "in_flight", Whole(1, 1_000_000)),
    ("rule", "near", Whole(1, 99)),
    ("rule", "on_failure", Word(&["gateway", "allow", "deny"])),
    ("source", "header", Text),
    ("source", "cookie", Text),
    ("source", "query", Text),
    ("source", "jwt_claim", Text),
    ("source", "payload", Text),
    ("source", "unverified", Flag),
    ("source", "metadata", TEXTS),
    ("source", "peer", Text),
    ("except", "addresses", TEXTS),
    ("except", "paths", TEXTS),
    ("except", "headers", TESTS),
    ("response", "status", Whole(400, 599)),
    ("response", "body", Text),
    ("response", "content_type", Text),
    ("response", "headers", Named(&Text)),
    ("response", "problem", Flag),
    ("response", "jitter", Duration),
    ("response", "fields", Word(response::FORMS)),
    ("cost", "header", Text),
    ("cost", "metadata", TEXTS),
    ("cost", "type", Word(NUMBER)),
    ("cost", "default", Whole(1, MAX_PERMITS)),
    ("cost", "max", Whole(1, MAX_PERMITS)),
    ("settled_cost", "response", Mapping("told")),
    ("settled_cost", "reserve", Whole(0, MAX_PERMITS)),
    ("settled_cost", "max", Whole(0, MAX_PERMITS)),
    ("settled_cost", "missing", Either(&[Word(&["max", "reserve"]), Whole(0, MAX_PERMITS)])),
    ("told", "header", Text),
    ("told", "metadata", TEXTS),
    ("told", "typed", Flag),
    ("told", "type", Word(NUMBER)),
    (
        "count",
        "status",
        List(&Either(&[Whole(100, 599), Word(&["1xx", "2xx", "3xx", "4xx", "5xx"])])),
    ),
    ("count", "details", TEXTS),
    ("count", "failed", Flag),
    ("ban", "after", Whole(1, 1_000_000)),
    ("ban", "within", Duration),
    ("ban", "for", Duration),
    ("ban", "max", Duration),
    ("ban", "halve_after", Duration),
    ("ban", "on", Word(&["refused", "counted"])),
    ("quota", "accounts", Whole(1, 1_000_000_000)),
    ("quota", "error", Number),
    ("quota", "memory", Size),
    ("hot", "over", Whole(1, 1_000_000_000)),
    ("hot", "per", Duration),
    ("hot", "header", Text),
    ("hot", "top", Whole(1, 100)),
    ("hot", "reveal", Flag),
    ("accepted", "headers", Flag),
    ("accepted", "filter_state", Flag),
    ("redis", "cluster", Text),
    ("redis", "timeout", Duration),
    ("redis", "on_failure", Word(&["gateway", "allow", "deny"])),
    ("redis", "username_env", Text),
    ("redis", "password_env", Text),
    ("redis", "db", Whole(0, 65_535)),
    ("redis", "proxied", Flag),
    ("redis", "parts", Whole(1, 1024)),
    ("remote", "cluster", Text),
    ("remote", "authority", Text),
    ("remote", "path", Text),
    ("remote", "method", Word(&["GET", "POST"])),
    ("remote", "headers", Named(&Either(&[Text, Mapping("variable")]))),
    ("document", "explain", Mapping("explain")),
    ("explain", "header", Text),
    ("explain", "token_env", Text),
    ("document", "admin", Mapping("admin")),
    ("admin", "path", Text),
    ("admin", "token_env", Text),
    ("variable", "env", Text),
    ("remote", "body", Text),
    ("remote", "every", Duration),
    ("remote", "timeout", Duration),
    ("remote", "value", Text),
    ("remote", "base64", Flag),
    ("remote", "max_size", Size),
];

/// The key of an algorithm, as its registry describes it.
pub fn of_algorithm(mapping: &str, key: &str) -> Option<Value> {
    let mut settings = REGISTRY.iter().flat_map(|entry| entry.keys);
    let setting =
        settings.find(|setting| ["rule", "plan"].contains(&mapping) && setting.name == key)?;
    let form = match setting.form {
        algorithm::Form::Number => Whole(setting.min, setting.max),
        algorithm::Form::Duration => Duration,
    };
    Some(form.schema())
}

impl Form {
    /// The schema of a value of this form.
    pub fn schema(&self) -> Value {
        match self {
            Text => json!({"type": "string"}),
            Flag => json!({"type": "boolean"}),
            Number => json!({"type": "number"}),
            Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
            Duration => json!({"anyOf": [time("|0"), {"const": 0}]}),
            Size => json!({"type": "string", "pattern": "^[0-9]+(KiB|MiB)$"}),
            Word(words) => json!({"enum": words}),
            Form::Unit => {
                json!({"anyOf": [{"enum": Unit::ALL.map(|(name, _)| name)}, time("")]})
            }
            Algorithm => {
                let names = REGISTRY.iter().flat_map(|entry| [entry.short, entry.long]);
                json!({"enum": names.collect::<Vec<_>>()})
            }
            // Readers of draft 7 ignore all keys beside `$ref`, such as the description.
            Mapping(name) => json!({"allOf": [reference(name)]}),
            List(item) => json!({"type": "array", "items": item.schema()}),
            Named(value) => json!({"type": "object", "additionalProperties": value.schema()}),
            Either(forms) => {
                json!({"anyOf": forms.iter().map(Form::schema).collect::<Vec<_>>()})
            }
        }
    }
}

/// A duration in text, or `more`.
fn time(more: &str) -> Value {
    let units = DURATIONS.map(|(name, _)| name).join("|");
    json!({"type": "string", "pattern": format!("^([0-9]+({units}){more})$")})
}
