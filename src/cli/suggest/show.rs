//! The output of a suggestion.

use std::io::{self, Write};

use diana_limiter::sizing;
use diana_policy::Memory;
use serde_json::{Value, json};

use super::Observation;
use super::peaks::SPANS;
use super::share::{limit, quantile};
use crate::table::{self, number, share};

/// The reported quantiles of callers in thousandths.
const QUANTILES: [(&str, u64); 5] =
    [("half", 500), ("90 %", 900), ("99 %", 990), ("99.9 %", 999), ("all", 1000)];

/// The suggestion: the limit, the number of callers that it would have refused, the rules, and
/// their memory.
struct Suggestion {
    limit: u64,
    refused: usize,
    yaml: String,
    memory: Memory,
    keys: usize,
}

impl Suggestion {
    fn new(observation: &Observation<'_>) -> io::Result<Suggestion> {
        let most = observation.peaks.most(observation.rule.span());
        let limit = limit(&most, observation.share);
        let refused = most.iter().filter(|most| u64::from(**most) > limit).count();
        let policy = observation.rule.policy(limit).map_err(io::Error::other)?;
        let memory = sizing::memory(&policy.limits, policy.keys);
        Ok(Suggestion {
            limit,
            refused,
            yaml: observation.rule.yaml(limit),
            memory,
            keys: policy.keys,
        })
    }
}

/// Writes rules as YAML, with figures in comments.
pub fn text(observation: &Observation<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Suggestion { limit, refused, yaml, memory, keys } = Suggestion::new(observation)?;
    let callers = observation.peaks.count();
    let (url, actor) =
        (crate::text::plain(&observation.rule.suggest.url), &observation.rule.suggest.actor);
    let mut comment = Vec::new();
    writeln!(
        comment,
        "{} requests to {url} from {} callers, identified by `{}`",
        number(observation.requests - observation.absent),
        number(callers as u64),
        crate::text::plain(actor)
    )?;
    if observation.absent > 0 {
        writeln!(comment, "{} more requests have no caller", number(observation.absent))?;
    }
    writeln!(
        comment,
        "\nMost requests of a caller in its busiest …, for this share of the callers:"
    )?;
    let rows: Vec<Vec<String>> = SPANS
        .iter()
        .enumerate()
        .map(|(span, (name, _))| {
            let most = observation.peaks.most(span);
            let cells = QUANTILES.iter().map(|(_, at)| number(quantile(&most, *at)));
            let limit = if span > 0 {
                number(super::share::limit(&most, observation.share))
            } else {
                String::new()
            };
            [(*name).to_owned()].into_iter().chain(cells).chain([limit]).collect()
        })
        .collect();
    let head: Vec<&str> =
        [""].into_iter().chain(QUANTILES.iter().map(|it| it.0)).chain(["limit"]).collect();
    table::write(&head, &rows, &mut comment)?;
    writeln!(
        comment,
        "\n{} per {} would have refused requests of {} callers ({}). Callers use up to {} KiB in each worker\nand {} KiB of \
         shared data, with room for {} callers (`keys`).",
        number(limit),
        observation.rule.unit(),
        number(refused as u64),
        share(refused as u64, callers as u64),
        memory.worker.div_ceil(1024),
        memory.shared.div_ceil(1024),
        number(keys as u64)
    )?;
    notes(observation).iter().try_for_each(|note| writeln!(comment, "{note}"))?;
    for line in String::from_utf8_lossy(&comment).lines() {
        writeln!(out, "{}", format!("# {line}").trim_end())?;
    }
    write!(out, "{yaml}")
}

/// Writes one JSON object for programs.
pub fn json(observation: &Observation<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Suggestion { limit, refused, yaml, memory, keys } = Suggestion::new(observation)?;
    let spans: Vec<Value> = SPANS
        .iter()
        .enumerate()
        .map(|(span, (name, _))| {
            let most = observation.peaks.most(span);
            let [half, ninety, ninety_nine, of_thousand, all] = QUANTILES.map(|(_, at)| quantile(&most, at));
            json!({
                "span": name, "p50": half, "p90": ninety, "p99": ninety_nine, "p99_9": of_thousand, "max": all,
                "limit": super::share::limit(&most, observation.share),
            })
        })
        .collect();
    let object = json!({
        "requests": observation.requests,
        "absent": observation.absent,
        "callers": observation.peaks.count(),
        "busiest": spans,
        "unit": observation.rule.unit(),
        "limit": limit,
        "refused": refused,
        "rules": yaml,
        "memory": {"worker": memory.worker, "shared": memory.shared, "keys": keys},
        "log": {"lines": observation.seen.lines, "bad": observation.seen.bad, "is_whole": observation.is_whole && observation.seen.broken.is_empty()},
        "notes": notes(observation),
    });
    writeln!(out, "{object:#}")
}

/// Notes about the log.
fn notes(observation: &Observation<'_>) -> Vec<String> {
    let mut notes = observation.seen.notes();
    if !observation.is_whole {
        notes.insert(0, "interrupted: the report covers the lines that were read".into());
    }
    notes
}
