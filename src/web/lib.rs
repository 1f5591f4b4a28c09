//! The interface between the playground and the core: problems of rules, decisions about simulated
//! traffic, and their explanations. Arguments and results are JSON. Equal arguments give equal
//! results.

mod experiment;
mod explained;
mod original;
mod outcome;
mod pasted;
mod problems;
mod traffic;
mod variant;

#[cfg(test)]
mod tests;

use experiment::Experiment;
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// Returns the problems of rules and advice about them: `{"problems": [{"line": 3, "column": 5,
/// "message": "…"}], "more": 0, "advice": ["…"]}`. Lines and columns count from 1.
#[must_use]
#[wasm_bindgen]
pub fn problems(rules: &str) -> String {
    problems::of(rules).to_string()
}

/// Returns the JSON schema of rules.
#[must_use]
#[wasm_bindgen]
pub fn schema() -> String {
    diana_config::schema().to_string()
}

/// Returns the decisions of an experiment over time, for each of its algorithms, or `{"error":
/// "…"}`.
#[must_use]
#[wasm_bindgen]
pub fn play(experiment: &str) -> String {
    answer(Experiment::read(experiment).and_then(|experiment| outcome::of(&experiment)))
}

/// Returns the requests between two times, in seconds since the start, as one of the algorithms
/// decides them.
#[must_use]
#[wasm_bindgen]
pub fn requests(experiment: &str, algorithm: &str, from: f64, to: f64) -> String {
    let read = Experiment::read(experiment);
    answer(read.and_then(|experiment| outcome::requests(&experiment, algorithm, from, to)))
}

/// Returns the decision of each rule about the request with this number.
#[must_use]
#[wasm_bindgen]
pub fn why(experiment: &str, algorithm: &str, number: usize) -> String {
    let read = Experiment::read(experiment);
    answer(read.and_then(|experiment| explained::of(&experiment, algorithm, number)))
}

/// Returns rules for a pasted configuration of ingress-nginx or nginx, with lists of the settings
/// that they lack and of those that never had an effect, and the parts of a request to its first
/// entry; or `{"error": "…"}`.
#[must_use]
#[wasm_bindgen]
pub fn convert(text: &str) -> String {
    answer(original::converted(text))
}

fn answer(result: Result<Value, String>) -> String {
    result.unwrap_or_else(|error| json!({"error": error})).to_string()
}
