//! `diana explain`: explains the decision about one request.

mod instant;
mod request;
mod show;

use std::io::{self, Write};
use std::rc::Rc;

use diana_limiter::Explained;
use diana_policy::time::Micros;
use diana_replay::{PlainRequest, ReplayDecision, ReplayFleet};

use crate::arguments::ExplainArguments;
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
        Ok(explanation) if explain.json => show::json(&explanation, out).map(|()| Exit::Fine),
        Ok(explanation) => show::text(&explanation, out).map(|()| Exit::Fine),
        Err((exit, why)) => {
            writeln!(io::stderr(), "diana: {why}")?;
            Ok(exit)
        }
    }
}

/// Explains the last of several equal requests, which arrive at the same instant at a gateway of one worker.
fn explained(explain: &ExplainArguments) -> Result<ExplainedRequest, (Exit, String)> {
    let unusable = |why: String| (Exit::Unusable, why);
    let source = rules::source(&explain.file)?;
    let (policy, _) =
        diana_config::check(&source).map_err(|problems| (Exit::Problems, problems.to_string()))?;
    let described = request::described(explain).map_err(unusable)?;
    let at = instant::parse(explain.at.as_deref()).map_err(unusable)?;
    // All earlier requests are still in flight when the last one arrives.
    let request = Rc::new(PlainRequest { at, took: Micros::MAX, ..described });
    let mut fleet = ReplayFleet::new(&source, 1, 1).map_err(unusable)?;
    for _ in 1..explain.times {
        fleet.request(&request);
    }
    let (decision, rules) = fleet.explain(&request);
    Ok(ExplainedRequest { decision, rules, callers: callers::of(&policy, &*request) })
}
