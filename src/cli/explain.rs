//! `diana explain`: explains the decision about one request.

mod request;
mod show;

use std::io::{self, Write};
use std::rc::Rc;

use diana_limiter::Explained;
use diana_policy::time::Micros;
use diana_policy::{Policy, Scope};
use diana_replay::{PlainRequest, ReplayDecision, ReplayFleet};
use jiff::Timestamp;

use crate::arguments::{ExplainArguments, ReportFormat};
use crate::callers::{self, ActorValue};
use crate::exit::Exit;
use crate::rules;

/// An explained request.
struct ExplainedRequest {
    decision: ReplayDecision,
    rules: Vec<Explained>,
    callers: Vec<ActorValue>,
}

/// Explains a request.
pub fn run(explain: &ExplainArguments, out: &mut dyn Write) -> io::Result<Exit> {
    match explained(explain) {
        Ok(explanation) if explain.json || explain.format == ReportFormat::Json => {
            show::json(&explanation, out).map(|()| Exit::Fine)
        }
        Ok(explanation) => show::text(&explanation, out).map(|()| Exit::Fine),
        Err((exit, why)) => {
            writeln!(io::stderr(), "diana: {why}")?;
            Ok(exit)
        }
    }
}

/// Explains the last of several equal requests, which arrive at the same instant at a gateway of
/// one worker.
fn explained(explain: &ExplainArguments) -> Result<ExplainedRequest, (Exit, String)> {
    let unusable = |why: String| (Exit::Unusable, why);
    let policy = rules::policy(&explain.file)?;
    let described = request::described(explain).map_err(unusable)?;
    let at = instant(explain.at.as_deref()).map_err(unusable)?;
    // All earlier requests are still in flight when the last one arrives.
    let request = Rc::new(PlainRequest { at, took: Micros::MAX, ..described });
    let mut fleet = ReplayFleet::new(&policy, 1, 1).map_err(unusable)?;
    for _ in 1..explain.times {
        fleet.request(&request);
    }
    let (decision, mut rules) = fleet.explain(&request);
    // The replay has no Redis, so that it counts here what the gateway counts for the fleet.
    if policy.redis.is_some() {
        count_for_fleet(&mut rules, &policy);
    }
    Ok(ExplainedRequest { decision, rules, callers: callers::of(&policy, &*request) })
}

/// Sets the configured scope of `global` rules in their explanations.
fn count_for_fleet(explained: &mut [Explained], policy: &Policy) {
    let rules = || policy.rules();
    for explained in explained {
        if let Explained::Decided(record) = explained
            && rules().any(|rule| rule.scope == Scope::Global && *rule.name == *record.rule)
        {
            record.scope = Scope::Global;
        }
    }
}

const ALLOWED: &str = "an instant such as 2026-11-24T21:38:34Z, from 1970 on";

/// The instant in a text, or the current time; an error if the text is none.
fn instant(at: Option<&str>) -> Result<Micros, String> {
    let instant = at.map_or_else(|| Ok(Timestamp::now()), str::parse);
    let wall = instant.ok().and_then(|instant| Micros::try_from(instant.as_microsecond()).ok());
    let wrong =
        || format!("found `{}`, allowed: {ALLOWED}", crate::text::plain(at.unwrap_or_default()));
    wall.ok_or_else(wrong)
}
