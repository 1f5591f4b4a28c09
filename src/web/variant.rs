//! The rules of an experiment with another algorithm.

use diana_algorithm::{Entry, REGISTRY, entry};
use diana_config::problem::Problems;
use diana_config::{ConfigSource, Reader};
use diana_replay::{PlainRequest, ReplayFleet};
use serde_json::{Map, Value};

use crate::experiment::Experiment;

/// Creates gateways with the rules of an experiment. Each rule uses the given algorithm, or its own
/// if the name is unknown.
///
/// # Errors
/// The first problem of the rules, or of the rules with this algorithm.
pub fn fleet(
    experiment: &Experiment,
    algorithm: &str,
) -> Result<ReplayFleet<PlainRequest>, String> {
    let source =
        ConfigSource::read(experiment.rules.as_bytes()).map_err(|problems| first(&problems))?;
    let source = match entry(algorithm) {
        None => source,
        Some(entry) => changed(&source, entry)?,
    };
    let (policy, _) = Reader::default().read(&source).map_err(|problems| first(&problems))?;
    ReplayFleet::new(&policy, experiment.gateways, experiment.workers)
}

/// The first problem without its position: the changed document has other lines than the text of
/// the page.
fn first(problems: &Problems) -> String {
    let problem = problems.list().first();
    problem.map(|it| format!("{}: {}", it.path, it.message)).unwrap_or_default()
}

fn changed(source: &ConfigSource, to: &Entry) -> Result<ConfigSource, String> {
    let document = serde_json::to_value(source.documents().first());
    let mut document = document.map_err(|error| error.to_string())?;
    change(&mut document, to);
    ConfigSource::read(document.to_string().as_bytes()).map_err(|problems| first(&problems))
}

/// Sets the algorithm of each rule, recognized by its keys `rpu` and `actor`, and drops the keys of
/// other algorithms.
fn change(value: &mut Value, to: &Entry) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| change(value, to)),
        Value::Object(map) if !map.contains_key("rpu") || !map.contains_key("actor") => {
            map.values_mut().for_each(|value| change(value, to));
        }
        Value::Object(map) if !is_by(map, to) => {
            let knows = |entry: &Entry, key: &str| entry.keys.iter().any(|it| it.name == key);
            let others = |key: &str| REGISTRY.iter().any(|entry| knows(entry, key));
            map.retain(|key, _| knows(to, key) || !others(key));
            map.insert("algo".into(), to.short.into());
        }
        _ => {}
    }
}

fn is_by(rule: &Map<String, Value>, algorithm: &Entry) -> bool {
    match rule.get("algo").and_then(Value::as_str) {
        Some(name) => algorithm.names().contains(&name),
        None => REGISTRY.first().is_some_and(|default| default.short == algorithm.short),
    }
}
