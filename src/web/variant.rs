//! Rules by another algorithm than their own.

use diana_algorithm::{Entry, REGISTRY, entry};
use diana_config::Source;
use diana_config::problem::Problems;
use diana_player::Fleet;
use serde_json::{Map, Value};

use crate::experiment::Experiment;
use crate::visit::Visit;

/// Gateways with the rules of an experiment, all by an algorithm; by their own if none is called so.
///
/// # Errors
/// What is wrong with the rules, or with them by this algorithm.
pub fn fleet(experiment: &Experiment, algorithm: &str) -> Result<Fleet<Visit>, String> {
    let source = Source::read(experiment.rules.as_bytes()).map_err(|problems| told(&problems))?;
    let source = match entry(algorithm) {
        None => source,
        Some(entry) => changed(&source, entry)?,
    };
    diana_config::check(&source).map_err(|problems| told(&problems))?;
    Fleet::new(&source, experiment.gateways, experiment.workers)
}

/// The first problem without its place, which is not that in the text of the page.
fn told(problems: &Problems) -> String {
    let first = problems.list().first();
    first.map(|it| format!("{}: {}", it.path, it.message)).unwrap_or_default()
}

fn changed(source: &Source, to: &Entry) -> Result<Source, String> {
    // Rules are one document.
    let document = serde_json::to_value(source.documents().first());
    let mut document = document.map_err(|error| error.to_string())?;
    change(&mut document, to);
    Source::read(document.to_string().as_bytes()).map_err(|problems| told(&problems))
}

/// Changes every rule that has another one, which have `rpu` and `actor`.
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
        Some(name) => [algorithm.short, algorithm.long].contains(&name),
        None => REGISTRY.first().is_some_and(|default| default.short == algorithm.short),
    }
}
