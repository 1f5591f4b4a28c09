//! What the playground asks of the core: what is wrong with rules, what becomes of made-up traffic under them, and why. All
//! is asked and answered in JSON, and the same question has the same answer.

mod experiment;
mod explained;
mod outcome;
mod pasted;
mod problems;
mod variant;
mod visit;

use experiment::Experiment;
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// What is wrong with rules, and what is allowed and probably not meant:
/// `{"problems": [{"line": 3, "column": 5, "message": "…"}], "advice": ["…"]}`, both counted from 1.
#[must_use]
#[wasm_bindgen]
pub fn problems(rules: &str) -> String {
    problems::of(rules).to_string()
}

/// The JSON schema of rules.
#[must_use]
#[wasm_bindgen]
pub fn schema() -> String {
    diana_config::schema().to_string()
}

/// What becomes of the traffic of an experiment, over time, by each of its algorithms; or `{"error": "…"}`.
#[must_use]
#[wasm_bindgen]
pub fn play(experiment: &str) -> String {
    told(Experiment::read(experiment).and_then(|experiment| outcome::of(&experiment)))
}

/// The requests of an experiment that came between two instants, in seconds since its beginning, by one of its algorithms.
#[must_use]
#[wasm_bindgen]
pub fn requests(experiment: &str, algorithm: &str, from: f64, to: f64) -> String {
    let read = Experiment::read(experiment);
    told(read.and_then(|experiment| outcome::requests(&experiment, algorithm, from, to)))
}

/// What each rule says of one request of an experiment, by its number.
#[must_use]
#[wasm_bindgen]
pub fn why(experiment: &str, algorithm: &str, number: usize) -> String {
    let read = Experiment::read(experiment);
    told(read.and_then(|experiment| explained::of(&experiment, algorithm, number)))
}

fn told(answer: Result<Value, String>) -> String {
    answer.unwrap_or_else(|error| json!({"error": error})).to_string()
}
