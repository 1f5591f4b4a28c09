//! The output of an explanation.

use std::io::{self, Write};

use diana_limiter::{Explained, Outcome, Reason, Record, Refused, Why, seconds};
use diana_policy::Scope;
use diana_policy::decision::Retry;
use diana_replay::ReplayDecision;
use serde_json::json;

use super::ExplainedRequest;

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
    let decided = |rule: &&Explained| matches!(rule, Explained::Decided(_));
    let width = explanation.rules.iter().map(|rule| name(rule).chars().count()).max().unwrap_or(0);
    for rule in explanation
        .rules
        .iter()
        .filter(decided)
        .chain(explanation.rules.iter().filter(|rule| !decided(rule)))
    {
        writeln!(out, "{:width$}  {}", name(rule), line(rule))?;
    }
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

fn name(rule: &Explained) -> &str {
    match rule {
        Explained::Decided(record) => &record.rule,
        Explained::Skipped { rule, .. } => rule,
    }
}

fn line(rule: &Explained) -> String {
    match rule {
        Explained::Decided(record) => decided(record),
        Explained::Skipped { why, .. } => match why {
            Why::Disabled => "skipped: the document has `disabled: true`",
            Why::Path => "does not apply: its entry does not cover the path",
            Why::Match => "does not apply: its entry covers the path, but its `match` fails",
            Why::Exempt => "does not apply: an `except` matches",
            Why::Absent => "does not apply: the request has no value for its actor",
            Why::Replaced(by) => return format!("does not apply: rule `{by}` replaces it"),
            Why::Plan => "does not apply: the caller's plan is unlimited",
            Why::Banned => "not checked: another rule bans the caller",
            Why::NotAsked => "not checked: another rule refuses",
        }
        .into(),
    }
}

fn decided(record: &Record) -> String {
    let limit = record.policy.0;
    let left =
        record.outcome.remaining().map_or("an unknown number".into(), |left| left.to_string());
    let shadow = if record.shadow { ", in shadow" } else { "" };
    let decided = match record.outcome {
        Outcome::Admitted { wait: 0, .. } => "admits".to_owned(),
        Outcome::Admitted { wait, .. } => format!("holds for {} s", seconds(wait)),
        Outcome::Refused(_) if record.marks => {
            "marks the request, since it exceeds the limit".to_owned()
        }
        Outcome::Refused(Refused { reason, retry, .. }) => refused(reason, retry),
    };
    format!("{decided}: {left} of {limit} remaining, {}{shadow}", counted(record.scope))
}

fn refused(reason: Reason, retry: Retry) -> String {
    match reason {
        Reason::Banned => {
            format!("bans the caller for {} s more", seconds(retry.ticks().unwrap_or(0)))
        }
        Reason::Unavailable => format!("refuses because Redis is unavailable, {}", again(retry)),
        Reason::Used | Reason::Outstanding | Reason::Busy => format!("refuses, {}", again(retry)),
    }
}

fn counted(scope: Scope) -> &'static str {
    match scope {
        Scope::Local => "counted per worker",
        Scope::Gateway => "counted per gateway",
        Scope::Global => "counted for the fleet",
    }
}

fn again(retry: Retry) -> String {
    match retry.ticks() {
        Some(ticks) => format!("retry after {} s", seconds(ticks)),
        None => "it can never be admitted".into(),
    }
}
