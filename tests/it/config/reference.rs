//! `envoy/limits.yaml` contains every key, and has no problems.

use super::{messages, policy};
use diana_policy::time::{SECOND, Unit};
use diana_policy::{Rule, Scope};

const REFERENCE: &str = include_str!("../../../envoy/limits.yaml");

#[test]
fn reference_rules_are_valid() {
    let policy = policy(REFERENCE);
    assert!(policy.limits.len() >= 3 && policy.actors.len() > 2);
    let algorithms: Vec<&str> =
        policy.limits.iter().flat_map(|limit| &limit.rules).map(|rule| rule.algo).collect();
    for entry in diana_algorithm::REGISTRY {
        assert!(algorithms.contains(&entry.short), "no rule with {}", entry.long);
    }
}

#[test]
fn examples_are_valid() {
    let block = policy(include_str!("../../../envoy/examples/block-address.yaml"));
    assert!(block.limits[0].rules[0].ban.is_some());
    assert_eq!(block.warnings, [""; 0]);
    let points = policy(include_str!("../../../envoy/examples/share-points.yaml"));
    assert!(points.limits.iter().all(|limit| limit.rules[0].daily.is_some()));
    let logins = policy(include_str!("../../../envoy/examples/logins.yaml"));
    assert!(logins.limits[0].rules.iter().all(|rule| rule.settling.is_some()));
    assert!(logins.limits[0].rules[2].ban.is_some());
    let tokens = policy(include_str!("../../../envoy/examples/llm-tokens.yaml"));
    let tokens = tokens.limits[0].rules[0].settling.as_ref().expect("it settles");
    assert_eq!(tokens.reserve, 500);
    let at_a_time = policy(include_str!("../../../envoy/examples/in-flight.yaml"));
    let mut rules = at_a_time.limits.iter().flat_map(|limit| &limit.rules);
    assert!(rules.all(Rule::is_in_flight));
    let deny = policy(include_str!("../../../envoy/examples/deny-list.yaml"));
    assert_eq!(deny.limits[0].matcher.any.len(), 4);
    assert_eq!(deny.warnings, [""; 0]);
    let problem = policy(include_str!("../../../envoy/examples/problem-json.yaml"));
    assert!(problem.limits[0].rules.iter().all(|rule| rule.response.is_problem));
    let plans = policy(include_str!("../../../envoy/examples/plans.yaml"));
    assert!(plans.limits.iter().all(|limit| limit.rules[0].plans.is_some()));
    assert_eq!(plans.warnings, [""; 0]);
    let monthly = policy(include_str!("../../../envoy/examples/monthly-quota.yaml"));
    let units: Vec<Unit> = monthly.limits[0].rules.iter().map(|rule| rule.quota.unit).collect();
    assert_eq!((units, monthly.warnings), (vec![Unit::Month, Unit::of(10 * SECOND)], Vec::new()));
    let posts = policy(include_str!("../../../envoy/examples/posts-a-day.yaml"));
    assert_eq!(posts.limits[0].rules.len(), 3);
}

/// Each document that was translated from another limiter lists the differences, and where it admits more.
#[test]
fn every_document_is_valid() {
    let folder = |name: &str| {
        let path = format!("{}/../envoy/{name}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
    };
    for (path, text) in folder("examples").chain(folder("migrations")) {
        if let Err(problems) = diana_config::Reader::default().policy(text.as_bytes()) {
            panic!("{}: {problems}", path.display());
        }
    }
    let migrations: Vec<_> = folder("migrations").collect();
    assert_eq!(migrations.len(), 11);
    for (path, text) in migrations {
        assert!(text.contains("\n# Differences that stay:\n# - "), "{}", path.display());
        let [more, no_more] = ["# It admits more than the original", "# It admits no more than"]
            .map(|line| text.matches(line).count());
        assert_eq!(more + no_more, 1, "{}", path.display());
    }
}

#[test]
fn rules_of_the_fleet_are_valid_and_count_together() {
    let redis = policy("limits: []\nredis: {cluster: c}").own();
    let text = include_bytes!("../../../envoy/fleet-rules.yaml");
    let policy = diana_config::Reader::remote(redis.clone()).policy(text).unwrap();
    let mut rules = policy.limits.iter().flat_map(|limit| &limit.rules);
    assert!(rules.all(|rule| rule.scope == Scope::Global));
    assert_eq!(policy.warnings, [""; 0]);
}

/// The product reports its keys: each message about an unknown key lists them.
#[test]
fn reference_rules_show_every_key() {
    let text = "
limits: [{nokey: 5, Url: /, match: {nokey: 5}, unless: [{claims: {nokey: 5}}, {claims: {payload: p, values: [{nokey: 5}]}}], except: {nokey: 5}, response: {nokey: 5},
  rules: [{nokey: 5, actor: device, unit: day, rpu: 1, cost: {nokey: 5, header: x, max: 1}, quota: {nokey: 5, accounts: 1},
    count: {nokey: 5, failed: true},
    hot: {nokey: 5, over: 9, per: 9s}, over: {nokey: 5, mark: x, value: y}, ban: {nokey: 5, after: 9, within: 9s, for: 9s}},
    {actor: device, unit: day, rpu: {nokey: 5, metadata: [a, b], default: 1, max: 1}},
    {actor: device, unit: day, rpu: 1, plans: {nokey: 5, of: {a: {nokey: 5}}}},
    {actor: device, unit: day, rpu: 1, cost: {nokey: 5, response: {nokey: 5, header: x}, max: 1}}]}]
actors: {x: [{nokey: 5}]}
accepted: {nokey: 5}
redis: {nokey: 5, cluster: c}
remote: {nokey: 5, cluster: c, path: /, headers: {x: {nokey: 5, env: A}}}
nokey: 5
";
    let messages = messages(text);
    let unknown = || messages.lines().filter(|line| line.contains("unknown key"));
    assert_eq!(unknown().count(), 24, "{messages}");
    for line in unknown() {
        let (_, keys) = line.split_once("unknown key, allowed: ").expect(line);
        assert!(is_in_schema(keys), "no mapping of the schema has all of {keys}");
        for key in keys.split(", ") {
            let shown =
                REFERENCE.contains(&format!("{key}: ")) || REFERENCE.contains(&format!("{key}:\n"));
            assert!(shown, "{key} is not shown");
        }
    }
    for (source, _) in diana_request::identity::REGISTRY.iter().flat_map(|kind| kind.options) {
        assert!(REFERENCE.contains(&format!("{source}: ")), "{source} is not shown");
    }
}

/// The comments of the reference are the descriptions.
#[test]
fn every_key_of_the_schema_has_a_description() {
    let schema = diana_config::schema();
    for (mapping, definition) in schema["definitions"].as_object().unwrap() {
        for (key, value) in definition["properties"].as_object().unwrap() {
            assert!(value["description"].is_string(), "{mapping}.{key} has no description");
        }
    }
}

/// Returns true if a mapping of the schema has all of these keys.
fn is_in_schema(keys: &str) -> bool {
    let schema = diana_config::schema();
    let mappings = schema["definitions"].as_object().unwrap();
    let has_all = |mapping: &serde_json::Value| {
        keys.split(", ").all(|key| mapping["properties"].get(key).is_some())
    };
    mappings.values().any(has_all)
}
