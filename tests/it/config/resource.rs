//! `LimitPolicy`: which mistakes the API server refuses, and which the companion.

use diana_config::{ConfigSource, Reader, resource};
use diana_policy::remote::Own;
use serde_json::Value;

use crate::support::structural::{mistake, spec_schema};

/// What refuses a mistake.
#[derive(Debug, PartialEq)]
enum Refused {
    /// The API server, at `kubectl apply`.
    Server,
    /// The companion, in the status of the policy.
    Companion,
    /// It has a meaning.
    Nothing,
}

use Refused::{Companion, Nothing, Server};

/// A rule to which a mistake is added.
const RULE: &str = "name: checkout, actor: account, unit: minute, rpu: 20";

/// Mistakes in `spec`, in which `RULE` stands for a rule, and `TARGET` for a route.
const MISTAKES: [(&str, Refused); 33] = [
    // Keys and their places.
    ("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, burts: 3}]}]}", Server),
    ("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE}], unit: minute}]}", Server),
    ("{targetRefs: [TARGET], limits: [{Url: /, rules: [{RULE}]}]}", Server),
    ("{targetRefs: [TARGET], limits: [{url: /, urls: [/a], rules: [{RULE}]}]}", Server),
    ("{targetRefs: [TARGET], limits: [{rules: [{RULE}]}]}", Server),
    ("{targetRefs: [TARGET], limits: [{url: /}]}", Server),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{actor: account, unit: minute, rpu: 20}]}]}",
        Server,
    ),
    ("{targetRefs: [TARGET]}", Server),
    ("{limits: [{url: /, rules: [{RULE}]}]}", Server),
    ("{targetRefs: [], limits: []}", Server),
    (
        "{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRout, name: shop}], limits: []}",
        Server,
    ),
    ("{targetRefs: [TARGET], limits: [{url: /, match: [{route: [a]}], rules: [{RULE}]}]}", Server),
    ("{targetRefs: [TARGET], limits: [], disabled: true}", Server),
    // Forms.
    ("{targetRefs: [TARGET], limits: [{url: [/a], rules: [{RULE}]}]}", Server),
    ("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, shadow: 'true'}]}]}", Server),
    (
        "{targetRefs: [TARGET], limits: [{url: /, match: {methods: [GET]}, rules: [{RULE}]}]}",
        Server,
    ),
    (
        "{targetRefs: [TARGET], limits: [{url: /, match: [{headers: {x-app: web}}], rules: [{RULE}]}]}",
        Server,
    ),
    // Values.
    ("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, algo: TBB}]}]}", Server),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{name: a, actor: account, unit: minuet, rpu: 20}]}]}",
        Server,
    ),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{name: a, actor: account, unit: minute, rpu: -1}]}]}",
        Server,
    ),
    ("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, enforce: 101}]}]}", Server),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, response: {jitter: 2 s}}]}]}",
        Server,
    ),
    ("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, scope: fleet}]}]}", Server),
    // Texts, and what depends on other keys.
    ("{targetRefs: [TARGET], limits: [{url: checkout, rules: [{RULE}]}]}", Companion),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{name: a, actor: acount, unit: minute, rpu: 20}]}]}",
        Companion,
    ),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{name: Check Out, actor: account, unit: minute, rpu: 20}]}]}",
        Companion,
    ),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{name: a, actor: account, rpu: 20}]}]}",
        Companion,
    ),
    ("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, algo: W, burst: 3}]}]}", Companion),
    (
        "{targetRefs: [TARGET], limits: [{url: /, match: [{headers: {x-app: {exact: a, prefix: b}}}], rules: [{RULE}]}]}",
        Companion,
    ),
    (
        "{targetRefs: [TARGET], limits: [{url: /, match: [{addresses: [10.0.0.0/33]}], rules: [{RULE}]}]}",
        Companion,
    ),
    (
        "{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE, plans: {by: [{client_address: {v5: 3}}], of: {a: {rpu: 2}}}}]}]}",
        Companion,
    ),
    // A valid text with another meaning.
    ("{targetRefs: [TARGET], limits: [{url: /chekout, rules: [{RULE}]}]}", Nothing),
    (
        "{targetRefs: [TARGET], limits: [{url: /, match: [{headers: {x-ap: {exact: web}}}], rules: [{RULE}]}]}",
        Nothing,
    ),
];

fn refused(spec: &str) -> Refused {
    let target = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}";
    let source =
        ConfigSource::read(spec.replace("TARGET", target).replace("RULE", RULE).as_bytes())
            .unwrap();
    let value = serde_json::to_value(&source.documents()[0]).unwrap();
    if mistake(&value, &spec_schema(), "spec").is_some() {
        // The companion refuses it, too, as does `diana check`, where a key is unknown.
        return Server;
    }
    let platform = ConfigSource::read(b"limits: []").unwrap();
    let document = resource::document(&source).map(|it| it.beside(platform.documents().first()));
    match document.and_then(|source| Reader::remote(Own::default()).read(&source)) {
        Ok(_) => Nothing,
        Err(_) => Companion,
    }
}

#[test]
fn mistakes_are_refused_as_early_as_possible() {
    for (spec, expected) in MISTAKES {
        assert_eq!(refused(spec), expected, "{spec}");
    }
    assert_eq!(refused("{targetRefs: [TARGET], limits: [{url: /, rules: [{RULE}]}]}"), Nothing);
}

/// The places of a schema where the API server checks no keys.
fn open_places(schema: &Value, path: &str, found: &mut Vec<String>) {
    if schema.get("x-kubernetes-preserve-unknown-fields").is_some() {
        found.push(path.into());
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, schema) in properties.into_iter().flatten() {
        open_places(schema, &format!("{path}.{key}"), found);
    }
    for inner in ["items", "additionalProperties"].iter().filter_map(|key| schema.get(key)) {
        open_places(inner, path, found);
    }
}

#[test]
fn only_the_networks_of_addresses_are_open() {
    let mut found = Vec::new();
    open_places(&spec_schema(), "", &mut found);
    let expected =
        ["cost_from.by", "plans.by"].map(|at| format!(".limits.rules.{at}.client_address"));
    assert_eq!(found, expected);
}
