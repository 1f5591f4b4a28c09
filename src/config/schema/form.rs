//! What the values of keys look like. What else must hold of them a schema need not say: the readers do.

use super::{object, reference};
use crate::response;
use diana_core::algorithm::{self, REGISTRY};
use diana_core::policy::MAX_PERMITS;
use diana_core::time::{DURATIONS, Unit};
use diana_core::tree::Tree;

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
pub fn of_algorithm(mapping: &str, key: &str) -> Option<Vec<(String, Tree)>> {
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
    /// The schema of such a value.
    pub fn schema(&self) -> Vec<(String, Tree)> {
        let of = |kind: &str| vec![("type".to_string(), Tree::from(kind))];
        let with =
            |kind: &str, key: &str, tree: Tree| [of(kind), vec![(key.to_string(), tree)]].concat();
        let any = |of: Vec<Tree>| vec![("anyOf".to_string(), Tree::List(of))];
        match self {
            Text => of("string"),
            Flag => of("boolean"),
            Number => of("number"),
            Whole(min, max) => {
                let range = [("minimum", *min), ("maximum", *max)];
                let range = range.map(|(key, value)| (key.to_string(), Tree::Int(value.into())));
                [of("integer"), range.to_vec()].concat()
            }
            Duration => any(vec![time("|0"), object(&[("const", Tree::Int(0))])]),
            Size => with("string", "pattern", "^[0-9]+(KiB|MiB)$".into()),
            Word(words) => choice(words.iter().copied()),
            Form::Unit => {
                let names = choice(Unit::ALL.iter().map(|(name, _)| *name));
                any(vec![Tree::Map(names), time("")])
            }
            Algorithm => choice(REGISTRY.iter().flat_map(|entry| [entry.short, entry.long])),
            Mapping(name) => match reference(name) {
                // Beside a reference older readers see nothing else, such as what it means.
                reference @ Tree::Map(_) => vec![("allOf".into(), Tree::List(vec![reference]))],
                _ => Vec::new(),
            },
            List(item) => with("array", "items", Tree::Map(item.schema())),
            Named(value) => with("object", "additionalProperties", Tree::Map(value.schema())),
            Either(forms) => any(forms.iter().map(|form| Tree::Map(form.schema())).collect()),
        }
    }
}

/// The text of a duration, or something else.
fn time(more: &str) -> Tree {
    let units: Vec<&str> = DURATIONS.iter().map(|(name, _)| *name).collect();
    let pattern = format!("^([0-9]+({}){more})$", units.join("|"));
    object(&[("type", "string".into()), ("pattern", Tree::Text(pattern))])
}

fn choice<'w>(words: impl Iterator<Item = &'w str>) -> Vec<(String, Tree)> {
    vec![("enum".into(), Tree::List(words.map(Tree::from).collect()))]
}
