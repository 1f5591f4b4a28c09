//! Explains why a request was admitted, delayed or refused.

use serde_json::{Value, json};

use crate::experiment::Experiment;
use crate::original;
use crate::outcome::since_start;
use crate::variant;

/// Returns the decision of each rule about the request with this number, after all earlier
/// requests.
///
/// # Errors
/// If the experiment is invalid, or if it has no such request.
pub fn of(experiment: &Experiment, algorithm: &str, number: usize) -> Result<Value, String> {
    if algorithm == original::NAME {
        return Err("the original explains no decision; choose the rules as written".into());
    }
    let (visits, _) = experiment.visits()?;
    let visit = visits.get(number).ok_or("the experiment has no such request")?;
    let mut fleet = variant::fleet(experiment, algorithm)?;
    for earlier in visits.iter().take(number) {
        fleet.request(earlier);
    }
    let (_, rules) = fleet.explain(visit);
    Ok(json!({
        "time": since_start(visit.at),
        "method": visit.method,
        "path": visit.path,
        "headers": visit.headers,
        "address": visit.address.map(|address| address.to_string()),
        "rules": rules,
    }))
}
