//! `envoy/limits.yaml` shows every key there is, and has no problems.

use super::{messages, policy};

const REFERENCE: &str = include_str!("../../../envoy/limits.yaml");

#[test]
fn the_reference_rules_are_valid() {
    let policy = policy(REFERENCE);
    assert!(policy.limits.len() >= 3 && policy.actors.len() > 2);
    let algorithms: Vec<&str> =
        policy.limits.iter().flat_map(|limit| &limit.rules).map(|rule| rule.algo).collect();
    for entry in diana::algorithm::REGISTRY {
        assert!(algorithms.contains(&entry.short), "no rule with {}", entry.long);
    }
}

/// Asks the product itself for its keys: a list of them follows every unknown key.
#[test]
fn the_reference_rules_show_every_key() {
    let text = "
limits: [{nokey: 5, Url: /, match: {nokey: 5}, except: {nokey: 5}, response: {nokey: 5},
  rules: [{nokey: 5, actor: all, unit: day, rpu: 1}]}]
actors: {x: [{nokey: 5}]}
accepted: {nokey: 5}
nokey: 5
";
    let messages = messages(text);
    assert_eq!(messages.lines().count(), 8, "{messages}");
    for line in messages.lines() {
        let (_, keys) = line.split_once("unknown key, allowed: ").expect(line);
        for key in keys.split(", ") {
            let shown =
                REFERENCE.contains(&format!("{key}: ")) || REFERENCE.contains(&format!("{key}:\n"));
            assert!(shown || key == "url", "{key} is not shown");
        }
    }
    for source in diana::actor::REGISTRY.iter().flat_map(|kind| kind.options) {
        assert!(REFERENCE.contains(&format!("{source}: ")), "{source} is not shown");
    }
}
