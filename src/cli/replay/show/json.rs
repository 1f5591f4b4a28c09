//! The format for programs: one object with the whole result.

use std::io::{self, Write};

use diana_limiter::seconds;
use diana_policy::time::{Micros, SECOND};
use serde_json::{Map, Value, json};

use crate::replay::counts::DecisionCounts;
use crate::replay::refused::RefusedCallers;
use crate::replay::report::{ReplayReport, instant};
use crate::replay::side::{Side, Waits};

/// The maximum number of listed callers.
const CALLERS: usize = 100;

/// Writes the object.
pub fn write(report: &ReplayReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:#}", object(report))
}

/// The object.
pub fn object(report: &ReplayReport<'_>) -> Value {
    let (seen, (gateways, workers)) = (report.seen, report.fleet);
    let against = report.other.zip(report.files.1.as_ref());
    let against = against.map(|((other, differences), file)| {
        let mut object = side(file, other);
        let counts = json!({
            "neither": differences.neither,
            "both": differences.both,
            "only_rules": differences.own,
            "only_against": differences.other,
        });
        object.insert("refused_by".into(), counts);
        object
    });
    let bad = seen.examples.iter();
    let bad: Vec<Value> = bad
        .map(|bad| json!({"file": bad.file, "line": bad.line, "why": bad.why, "text": bad.text}))
        .collect();
    json!({
        "from": instant(report.between.0),
        "to": instant(report.between.1),
        "gateways": gateways,
        "workers": workers,
        "log": {
            "lines": seen.lines,
            "bad": seen.bad,
            "bad_examples": bad,
            "late": seen.late,
            "latest": seconds(seen.latest),
            "is_whole": report.is_whole && seen.broken.is_empty(),
        },
        "rules": side(&report.files.0, report.side),
        "against": against,
        "notes": report.notes(),
    })
}

fn side(file: &str, side: &Side) -> Map<String, Value> {
    let by_rule = side.by_rule().map(|(name, counts, held)| {
        let mut object = self::counts(counts);
        object.insert("consulted".into(), counts.consulted().into());
        object.insert("rule".into(), name.into());
        object.insert("waits".into(), waits(held));
        Value::Object(object)
    });
    let all = side.all();
    let all = json!({
        "admitted": all.admitted, "held": all.held, "refused": all.refused, "banned": all.banned,
    });
    let mut object = Map::new();
    object.insert("file".into(), file.into());
    object.insert("all".into(), all);
    object.insert("by_rule".into(), by_rule.collect());
    object.insert("refused_callers".into(), side.refused.count().into());
    object.insert("refused_most".into(), most(&side.refused));
    object.insert("shadow_refused_callers".into(), side.shadowed.count().into());
    object.insert("shadow_refused_most".into(), most(&side.shadowed));
    object.insert("over_time".into(), over_time(side));
    object
}

/// The callers with the most refusals.
fn most(refused: &RefusedCallers) -> Value {
    let callers = refused.most(CALLERS).into_iter().map(|it| {
        json!({
            "caller": it.caller,
            "rule": &*it.rule,
            "times": it.times,
            "first": instant(it.between.0),
            "last": instant(it.between.1),
        })
    });
    callers.collect()
}

/// A count, with its name.
type Count = (&'static str, fn(&DecisionCounts) -> u64);

const COUNTS: [Count; 10] = [
    ("admitted", |it| it.admitted),
    ("refused", |it| it.refused),
    ("banned", |it| it.banned),
    ("beside", |it| it.beside),
    ("held", |it| it.held),
    ("shadow_refused", |it| it.shadow_refused),
    ("over", |it| it.over),
    ("shadow_held", |it| it.shadow_held),
    ("bans", |it| it.bans),
    ("hot", |it| it.hot),
];

fn counts(of: &DecisionCounts) -> Map<String, Value> {
    COUNTS.iter().map(|(name, count)| ((*name).to_owned(), count(of).into())).collect()
}

fn waits(waits: &Waits) -> Value {
    if waits.is_empty() {
        return Value::Null;
    }
    let at = |quantile: f64| seconds(waits.value_at_quantile(quantile));
    json!({"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": seconds(waits.max())})
}

/// The counts of each step: of all requests, and the non-zero ones of each rule.
fn over_time(side: &Side) -> Value {
    let steps: Vec<(Micros, &[DecisionCounts])> = side.series.steps().collect();
    let line = |number: usize, count: fn(&DecisionCounts) -> u64| -> Vec<u64> {
        steps.iter().map(|(_, all)| all.get(number).map_or(0, count)).collect()
    };
    let lines = |number: usize| -> Map<String, Value> {
        let lines = COUNTS.iter().map(|(name, count)| (*name, line(number, *count)));
        let lines = lines.filter(|(_, line)| line.iter().any(|count| *count > 0));
        lines.map(|(name, line)| (name.to_owned(), line.into())).collect()
    };
    let begins: Vec<u64> = steps.iter().map(|(at, _)| at / SECOND).collect();
    let by_rule = side.rules.iter().enumerate();
    let by_rule: Map<String, Value> =
        by_rule.map(|(number, name)| (name.clone(), lines(number + 1).into())).collect();
    json!({
        "step": side.series.length() / SECOND,
        "begins": begins,
        "all": lines(0),
        "by_rule": by_rule,
    })
}
