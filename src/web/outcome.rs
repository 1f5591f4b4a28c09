//! The decisions about the traffic of an experiment.

use std::rc::Rc;

use diana_import::ModelDecision;
use diana_policy::time::{Micros, SECOND};
use diana_replay::{PlainRequest, ReplayDecision};
use serde::Serialize;
use serde_json::{Value, json};

use crate::experiment::Experiment;
use crate::original;
use crate::traffic::START;
use crate::variant;

/// Most bars of a plot.
const STEPS: f64 = 75.0;

/// Lengths of a bar, in seconds.
const LENGTHS: [f64; 14] =
    [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1_200.0];

/// Most requests that are listed.
const LISTED: usize = 200;

/// The decision about a request, by Diana or by the original with the name of the rule.
enum PlayedDecision {
    Diana(ReplayDecision),
    Original(ModelDecision, Option<String>),
}

impl PlayedDecision {
    fn rule(&self) -> Option<&str> {
        match self {
            PlayedDecision::Diana(decision) => decision.rule(),
            PlayedDecision::Original(_, rule) => rule.as_deref(),
        }
    }

    fn wait(&self) -> Option<Micros> {
        match self {
            PlayedDecision::Diana(ReplayDecision::Held { wait, .. }) => Some(*wait),
            PlayedDecision::Original(ModelDecision::Waits(ms), _) => Some(ms * 1_000),
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            PlayedDecision::Diana(ReplayDecision::Admitted)
            | PlayedDecision::Original(ModelDecision::Passes, _) => "admitted",
            PlayedDecision::Diana(ReplayDecision::Held { .. })
            | PlayedDecision::Original(ModelDecision::Waits(_), _) => "held",
            PlayedDecision::Diana(decision) if decision.is_ban() => "banned",
            PlayedDecision::Diana(ReplayDecision::Refused(_))
            | PlayedDecision::Original(ModelDecision::Refused, _) => "refused",
        }
    }

    /// Details for readers.
    fn details(&self) -> String {
        let seconds = |ticks: Micros| format!("{} s", ticks.div_ceil(1_000) as f64 / 1_000.0);
        match self {
            PlayedDecision::Diana(ReplayDecision::Refused(refusal)) => {
                let again = refusal.retry.ticks().map(seconds);
                again.map_or("its cost is above the limit".into(), |it| format!("retry after {it}"))
            }
            _ => self.wait().map(|wait| format!("for {}", seconds(wait))).unwrap_or_default(),
        }
    }
}

/// Number of requests per decision.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct StepCounts {
    admitted: u64,
    held: u64,
    refused: u64,
    banned: u64,
}

impl StepCounts {
    fn add(&mut self, decision: &PlayedDecision) {
        *match decision.name() {
            "admitted" => &mut self.admitted,
            "held" => &mut self.held,
            "banned" => &mut self.banned,
            _ => &mut self.refused,
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
            Ok(decisions) => shown(algorithm, &visits, &decisions, length, steps),
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
    let decisions = played(experiment, algorithm, &visits)?;
    let all = visits.iter().zip(&decisions).enumerate();
    let own = all.filter(|(_, (visit, _))| (from..to).contains(&since_start(visit.at)));
    let list = own.take(LISTED).map(|(number, (visit, decision))| {
        json!({
            "number": number,
            "time": since_start(visit.at),
            "request": format!("{} {}", visit.method, visit.path),
            "address": visit.address.map(|address| address.to_string()),
            "decision": decision.name(),
            "rule": decision.rule(),
            "more": decision.details(),
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
    visits: &[Rc<PlainRequest>],
) -> Result<Vec<PlayedDecision>, String> {
    if algorithm == original::NAME {
        let decisions = original::decisions(&experiment.original, visits)?;
        let all = decisions.into_iter();
        return Ok(all.map(|(it, rule)| PlayedDecision::Original(it, rule)).collect());
    }
    let mut fleet = variant::fleet(experiment, algorithm)?;
    Ok(visits.iter().map(|visit| PlayedDecision::Diana(fleet.request(visit))).collect())
}

fn shown(
    algorithm: &str,
    visits: &[Rc<PlainRequest>],
    decisions: &[PlayedDecision],
    length: f64,
    steps: usize,
) -> Value {
    let mut series = vec![StepCounts::default(); steps];
    let mut total = StepCounts::default();
    let mut rules: Vec<(&str, StepCounts)> = Vec::new();
    let mut longest: Micros = 0;
    for (visit, decision) in visits.iter().zip(decisions) {
        let step = (since_start(visit.at) / length) as usize;
        if let Some(counts) = series.get_mut(step) {
            counts.add(decision);
        }
        total.add(decision);
        longest = longest.max(decision.wait().unwrap_or(0));
        let Some(rule) = decision.rule() else { continue };
        match rules.iter_mut().find(|(own, _)| *own == rule) {
            Some((_, counts)) => counts.add(decision),
            None => {
                let mut counts = StepCounts::default();
                counts.add(decision);
                rules.push((rule, counts));
            }
        }
    }
    let rules: Vec<Value> =
        rules.iter().map(|(rule, counts)| json!({"rule": rule, "counts": counts})).collect();
    let column = |read: fn(&StepCounts) -> u64| series.iter().map(read).collect::<Vec<_>>();
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
