//! Why a request was admitted, held or refused.

use serde_json::{Value, json};

use crate::experiment::Experiment;
use crate::outcome::since_start;
use crate::variant;

/// What each rule says of the request of this number, after all that came before it.
///
/// # Errors
/// What is wrong with the experiment, or if there is no such request.
pub fn of(experiment: &Experiment, algorithm: &str, number: usize) -> Result<Value, String> {
    let (visits, _) = experiment.visits()?;
    let visit = visits.get(number).ok_or("there is no such request")?;
    let mut fleet = variant::fleet(experiment, algorithm)?;
    visits.iter().take(number).for_each(|earlier| fleet.request(earlier));
    Ok(json!({
        "time": since_start(visit.at),
        "method": visit.told.method,
        "path": visit.told.path,
        "headers": visit.told.headers,
        "address": visit.address.map(|address| address.to_string()),
        "rules": fleet.explain(visit),
    }))
}
