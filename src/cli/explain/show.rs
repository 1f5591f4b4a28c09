//! The output of an explanation.

use std::io::{self, Write};

use diana_policy::decision::Retry;
use diana_replay::ReplayDecision;
use serde_json::{Value, json};

use super::ExplainedRequest;
use crate::explanation;

/// Writes text for people.
pub fn text(explanation: &ExplainedRequest, out: &mut dyn Write) -> io::Result<()> {
    match &explanation.decision {
        ReplayDecision::Admitted => writeln!(out, "The request is admitted.")?,
        ReplayDecision::Held { .. } => writeln!(out, "The request is held, then admitted.")?,
        ReplayDecision::Refused(refusal) => {
            let (status, rule) = (refusal.status(), &refusal.by.rule);
            writeln!(
                out,
                "The request is refused with {status} by the rule `{rule}`; {}.",
                again(refusal.retry)
            )?;
        }
    }
    writeln!(out)?;
    let rules: Vec<Value> =
        explanation.rules.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    explanation::write(&rules, out)?;
    if !explanation.callers.is_empty() {
        writeln!(out, "\nCallers:")?;
    }
    for caller in &explanation.callers {
        match &caller.found {
            Some((kind, value)) => writeln!(out, "{}: {value} (by {kind})", caller.actor)?,
            None => writeln!(out, "{}: not in this request", caller.actor)?,
        }
    }
    Ok(())
}

/// Writes JSON for programs.
pub fn json(explanation: &ExplainedRequest, out: &mut dyn Write) -> io::Result<()> {
    let (decision, status) = match &explanation.decision {
        ReplayDecision::Admitted => ("admitted", None),
        ReplayDecision::Held { .. } => ("held", None),
        ReplayDecision::Refused(refusal) => ("refused", Some(refusal.status())),
    };
    let callers = explanation.callers.iter().map(|caller| {
        let (source, value) = caller.found.as_ref().map(|(kind, value)| (kind, value)).unzip();
        json!({"actor": caller.actor, "source": source, "value": value})
    });
    let object = json!({"decision": decision, "status": status, "rules": explanation.rules, "callers": callers.collect::<Vec<_>>()});
    writeln!(out, "{object:#}")
}

fn again(retry: Retry) -> String {
    match retry.ticks() {
        Some(ticks) => format!("retry after {}", explanation::duration(ticks)),
        None => "it can never be admitted".into(),
    }
}
