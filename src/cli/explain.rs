//! `diana explain`: explains the decision about one request.

mod asked;
mod instant;
mod show;

use std::io::{self, Write};
use std::rc::Rc;

use diana_limiter::{Explained, Limiter, Verdict};
use diana_player::host::{Data, Still};
use diana_policy::Policy;
use diana_policy::key::Seed;
use diana_policy::time::Now;
use diana_store::permit::{End, Permit};

use crate::arguments::Explain;
use crate::callers::{self, Caller};
use crate::exit::Exit;
use crate::rules;
use asked::Asked;

/// A new gateway with one worker.
const SEED: Seed = Seed { k0: 0, k1: 0 };

/// The explanation of a request.
struct Told {
    verdict: Verdict,
    rules: Vec<Explained>,
    callers: Vec<Caller>,
}

/// Explains a request.
pub fn run(explain: &Explain, out: &mut dyn Write) -> io::Result<Exit> {
    let read = rules::only(&explain.file).and_then(|policy| {
        let asked = Asked::new(explain).map_err(|why| (Exit::Unusable, why))?;
        let now = instant::now(explain.at.as_deref()).map_err(|why| (Exit::Unusable, why))?;
        judge(policy, &asked, now, explain.times).map_err(|why| (Exit::Unusable, why))
    });
    match read {
        Ok(told) if explain.json => show::json(&told, out).map(|()| Exit::Fine),
        Ok(told) => show::text(&told, out).map(|()| Exit::Fine),
        Err((exit, why)) => {
            writeln!(io::stderr(), "diana: {why}")?;
            Ok(exit)
        }
    }
}

/// The decision about the last of `times` equal requests at one instant.
fn judge(policy: Policy, asked: &Asked, now: Now, times: u32) -> Result<Told, String> {
    let callers = callers::of(&policy, asked);
    let data = Rc::<Data>::default();
    let mut limiter = Limiter::alone(policy, SEED, data).map_err(|rule| rule.to_string())?;
    // Earlier requests keep their permits until the last decision.
    let mut open: Vec<Permit> = Vec::new();
    for _ in 1..times {
        match limiter.decide(asked, &Still(now)) {
            Verdict::Admit(permit, _) => open.push(permit),
            Verdict::Hold(held) => {
                open.push(held.permit);
                held.place.finish(End::Served);
            }
            Verdict::Refuse(_) | Verdict::Ask { .. } => {}
        }
    }
    limiter.explain(true);
    let (mut verdict, skipped) = limiter.decide_explained(asked, &Still(now));
    let mut rules = match &mut verdict {
        Verdict::Admit(_, report) => {
            report.as_mut().map(|it| std::mem::take(&mut it.explained)).unwrap_or_default()
        }
        Verdict::Hold(held) => std::mem::take(&mut held.report.explained),
        Verdict::Refuse(refusal) => std::mem::take(&mut refusal.explained),
        Verdict::Ask { .. } => Vec::new(),
    };
    rules.extend(skipped);
    Ok(Told { verdict, rules, callers })
}
