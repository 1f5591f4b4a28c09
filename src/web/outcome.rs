//! The decisions about the traffic of an experiment.

use std::rc::Rc;

use diana_player::{Arrival, Fate, Judged};
use diana_policy::time::{Micros, SECOND};
use serde::Serialize;
use serde_json::{Value, json};

use crate::experiment::Experiment;
use crate::variant;
use crate::visit::{START, Visit};

/// Most bars of a plot.
const STEPS: f64 = 75.0;

/// Lengths of a bar, in seconds.
const LENGTHS: [f64; 14] =
    [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1_200.0];

/// Most requests that are listed.
const LISTED: usize = 200;

/// Number of requests per decision.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Counts {
    admitted: u64,
    held: u64,
    refused: u64,
    banned: u64,
}

impl Counts {
    fn add(&mut self, fate: &Fate) {
        *match fate {
            Fate::Goes => &mut self.admitted,
            Fate::Held(..) => &mut self.held,
            Fate::Refused(_) if fate.is_ban() => &mut self.banned,
            Fate::Refused(_) => &mut self.refused,
        } += 1;
    }
}

/// Returns the counts over time for each algorithm.
///
/// # Errors
/// If the experiment is invalid.
pub fn of(experiment: &Experiment) -> Result<Value, String> {
    let (visits, log) = experiment.visits()?;
    let wanted = |length: &&f64| experiment.seconds / **length <= STEPS;
    let length = LENGTHS.iter().find(wanted).copied().unwrap_or(experiment.seconds / STEPS);
    let steps = (experiment.seconds / length).ceil() as usize;
    let variants = experiment.algorithms.iter().map(|algorithm| {
        match played(experiment, algorithm, &visits) {
            Ok(judged) => shown(algorithm, &judged, length, steps),
            Err(error) => json!({"algorithm": algorithm, "error": error}),
        }
    });
    let variants: Vec<Value> = variants.collect();
    let times: Vec<f64> = (0..steps).map(|step| step as f64 * length).collect();
    Ok(
        json!({"requests": visits.len(), "log": log, "step": length, "times": times, "variants": variants}),
    )
}

/// Returns the requests between two times, in seconds since the start, with their decisions.
///
/// # Errors
/// If the experiment is invalid.
pub fn requests(
    experiment: &Experiment,
    algorithm: &str,
    from: f64,
    to: f64,
) -> Result<Value, String> {
    let (visits, _) = experiment.visits()?;
    let judged = played(experiment, algorithm, &visits)?;
    // Requests are not decided in the order of their arrival: a delayed one is decided after later ones.
    let mut own: Vec<(usize, &Judged<Visit>)> = Vec::new();
    for (number, visit) in visits.iter().enumerate() {
        let at = since_start(visit.at);
        if at >= from && at < to && own.len() < LISTED {
            let is_it = |judged: &&Judged<Visit>| Rc::ptr_eq(&judged.arrival, visit);
            own.extend(judged.iter().find(is_it).map(|judged| (number, judged)));
        }
    }
    let list = own.into_iter().map(|(number, Judged { arrival, fate, .. })| {
        let (decision, rule, more) = decision(fate);
        json!({
            "number": number,
            "time": since_start(arrival.at),
            "request": format!("{} {}", arrival.contents.method, arrival.contents.path),
            "address": arrival.address.map(|address| address.to_string()),
            "decision": decision,
            "rule": rule,
            "more": more,
        })
    });
    Ok(json!({"requests": list.collect::<Vec<_>>(), "most": LISTED}))
}

/// Seconds since the start of the experiment.
pub fn since_start(at: Micros) -> f64 {
    at.saturating_sub(START) as f64 / SECOND as f64
}

fn played(
    experiment: &Experiment,
    algorithm: &str,
    visits: &[Rc<Visit>],
) -> Result<Vec<Judged<Visit>>, String> {
    let mut fleet = variant::fleet(experiment, algorithm)?;
    visits.iter().for_each(|visit| fleet.request(visit));
    fleet.finish();
    Ok(fleet.judged)
}

fn shown(algorithm: &str, judged: &[Judged<Visit>], length: f64, steps: usize) -> Value {
    let mut series = vec![Counts::default(); steps];
    let mut total = Counts::default();
    let mut rules: Vec<(&str, Counts)> = Vec::new();
    let mut longest: Micros = 0;
    for Judged { arrival, fate, .. } in judged {
        let step = (since_start(arrival.at()) / length) as usize;
        series.get_mut(step).into_iter().for_each(|counts| counts.add(fate));
        total.add(fate);
        if let Fate::Held(_, wait) = fate {
            longest = longest.max(*wait);
        }
        let Some(rule) = fate.rule() else { continue };
        match rules.iter_mut().find(|(own, _)| *own == rule) {
            Some((_, counts)) => counts.add(fate),
            None => {
                let mut counts = Counts::default();
                counts.add(fate);
                rules.push((rule, counts));
            }
        }
    }
    let rules: Vec<Value> =
        rules.iter().map(|(rule, counts)| json!({"rule": rule, "counts": counts})).collect();
    let column = |read: fn(&Counts) -> u64| series.iter().map(read).collect::<Vec<_>>();
    json!({
        "algorithm": algorithm,
        "total": total,
        "longestWait": longest as f64 / SECOND as f64,
        "rules": rules,
        "admitted": column(|it| it.admitted),
        "held": column(|it| it.held),
        "refused": column(|it| it.refused),
        "banned": column(|it| it.banned),
    })
}

/// The decision about a request, the rule that made it, and details.
fn decision(fate: &Fate) -> (&'static str, Option<&str>, String) {
    let seconds = |ticks: Micros| format!("{} s", ticks.div_ceil(1_000) as f64 / 1_000.0);
    match fate {
        Fate::Goes => ("admitted", None, String::new()),
        Fate::Held(rule, wait) => ("held", rule.as_deref(), format!("for {}", seconds(*wait))),
        Fate::Refused(refusal) => {
            let decision = if fate.is_ban() { "banned" } else { "refused" };
            let again = refusal.retry.ticks().map(seconds);
            let again = again
                .map_or("its cost is above the limit".into(), |wait| format!("retry after {wait}"));
            (decision, fate.rule(), again)
        }
    }
}
