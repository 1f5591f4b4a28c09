//! Requests to one limiter and its decisions: scenarios in files, with their outcomes.
//!
//! A scenario is a configuration followed by steps, each after `> `.
//!
//! | key | meaning |
//! | --- | --- |
//! | `times`, `every` | number of requests, and the pause after each |
//! | `callers` | number of accounts that send the request |
//! | `report` | writes the whole report, not only the decision |
//! | `wait`, `upkeep`, `metrics`, `retire` | no request: advances the clock, runs maintenance, reports metrics, retires the limiter |
//! | `ticks` | no request: this number of times, advances the clock by a tenth of a second and runs maintenance |
//! | `hot` | no request: lists the hot callers |
//!
//! All other keys are those of `steps::request`. If a configuration has a Redis, it is unavailable.
//! `SCOPE` in a configuration stands for `local` and `gateway`, which make the same decisions.

use std::fmt::Write;

use diana_limiter::{Record, Refusal, Report, Verdict};
use diana_policy::headers::Headers;
use diana_store::permit::End;
use kit::fake::FakeRequest;
use serde_yaml::Mapping;

use super::Gate;
use crate::support::documents::{assert_outcomes, outcome};
use crate::support::steps;
use kit::fake::FakeMetrics;

#[test]
fn scenarios_match_their_transcripts() {
    assert_outcomes(concat!(env!("CARGO_MANIFEST_DIR"), "/it/limiter/scenarios"), |_, _, text| {
        let [local, gateway] = ["local", "gateway"].map(|scope| transcript(text, scope));
        assert_eq!(local, gateway);
        local
    });
}

/// The steps of a scenario, each followed by its outcome.
fn transcript(scenario: &str, scope: &str) -> String {
    let (configuration, steps) = steps::split(scenario);
    let configuration = configuration.replace("SCOPE", scope);
    let mut gate = match configuration.contains("redis:") {
        true => Gate::cut_off(&configuration),
        false => Gate::new(&configuration),
    };
    let mut transcript = String::new();
    for (line, keys) in steps {
        transcript += &outcome(line, &take(&mut gate, keys));
    }
    if scenario.contains("SCOPE") {
        transcript = transcript.replace(&format!("scope={scope}"), "scope=SCOPE");
    }
    transcript
}

fn take(gate: &mut Gate, mut keys: Mapping) -> String {
    if let Some(pause) = keys.remove("wait") {
        gate.wait(steps::ticks(&pause));
        return "later".into();
    }
    if keys.remove("upkeep").is_some() {
        gate.limiter.maintain(gate.clock.0.get());
        return "done".into();
    }
    if let Some(ticks) = keys.remove("ticks") {
        let ticks = ticks.as_u64().unwrap();
        let goes_on = (0..ticks).map(|_| gate.tick()).last().unwrap();
        return if goes_on { "more is to be done".into() } else { "done".into() };
    }
    if keys.remove("hot").is_some() {
        return gate.limiter.hot_callers().map_or("none".into(), |callers| callers.line());
    }
    if let Some(word) = keys.remove("metrics") {
        let word = steps::text(&word);
        let lines = gate.metrics();
        return join(lines.iter().filter(|line| line.contains(&word)).map(String::as_str));
    }
    if keys.remove("retire").is_some() {
        let lines = FakeMetrics::default();
        gate.limiter.retire("ns", gate.clock.0.get(), &lines);
        return join(lines.0.take().iter().map(String::as_str));
    }
    send(gate, keys)
}

/// Sends requests, and counts consecutive equal decisions.
fn send(gate: &mut Gate, mut keys: Mapping) -> String {
    let mut number = |key: &str| keys.remove(key).map_or(1, |it| it.as_u64().unwrap());
    let (times, callers) = (number("times"), number("callers"));
    let pause = keys.remove("every").map_or(0, |pause| steps::ticks(&pause));
    let is_whole = keys.remove("report").is_some();
    let request = steps::request(&keys);
    let mut decisions = Vec::new();
    for caller in 0..callers {
        let mut request = request.clone();
        if callers > 1 {
            request = request.header("x-account-id", format!("account-{caller}"));
        }
        for _ in 0..times {
            let decision = decide(gate, &request, is_whole);
            decisions.push(decision);
            gate.wait(pause);
        }
    }
    steps::counted(decisions)
}

/// The decision about a request in one line, followed by the report if requested.
fn decide(gate: &mut Gate, request: &FakeRequest, is_whole: bool) -> String {
    let now = gate.clock.0.get().mono;
    match gate.decide(request) {
        Verdict::Admit(_, None) => "admitted".into(),
        Verdict::Admit(_, Some(report)) if is_whole => format!("admitted{}", reported(&report)),
        Verdict::Admit(_, Some(report)) => format!("admitted{}", marked(&report)),
        Verdict::Hold(held) => {
            held.position.finish(End::Served);
            let rule = held.report.by.as_ref().map_or("none", |by| &by.rule);
            let whole = if is_whole { reported(&held.report) } else { marked(&held.report) };
            format!("held for {} ms by {rule}{whole}", (held.until - now) as f64 / 1000.0)
        }
        Verdict::Refuse(refusal) if is_whole => {
            format!("{}{}", refused(&refusal), whole(&refusal))
        }
        Verdict::Refuse(refusal) => refused(&refusal),
        Verdict::Pending { .. } => "waits for others".into(),
    }
}

/// The headers that mark a request.
fn marked(report: &Report) -> String {
    let marks = report.marks.iter().map(|(header, rules)| format!(", marked {header}: {rules}"));
    marks.collect()
}

/// A refusal in one line.
fn refused(refusal: &Refusal) -> String {
    let state = refusal.by.state();
    let kind = state.split(' ').next().unwrap_or_default();
    let mut line = format!("{kind} by {}", refusal.by.rule);
    if let Some(seconds) = refusal.headers().get("retry-after") {
        write!(line, ", retry after {seconds} s").unwrap();
    }
    if refusal.is_logged {
        line += ", logged";
    }
    line
}

fn reported(report: &Report) -> String {
    let mut lines = fields(&report.headers());
    for (name, rules) in &report.marks {
        writeln!(lines, "  upstream: {name}: {rules}").unwrap();
    }
    if let Some(by) = &report.by {
        lines += &state(by);
    }
    format!("\n{}", lines.trim_end())
}

fn whole(refusal: &Refusal) -> String {
    let mut lines = fields(&refusal.headers());
    writeln!(lines, "  status: {}", refusal.status()).unwrap();
    writeln!(lines, "  {}: {}", refusal.content_type(), refusal.body(b"7")).unwrap();
    lines += &state(&refusal.by);
    format!("\n{}", lines.trim_end())
}

fn fields(fields: &Headers) -> String {
    let mut lines = String::new();
    for (name, value) in fields.iter() {
        writeln!(lines, "  {name}: {value}").unwrap();
    }
    lines
}

/// The filter state of a record without the key of its caller.
fn state(record: &Record) -> String {
    let state = record.state();
    let (state, _) = state.split_once(" key=").unwrap();
    format!("  state: {state}\n")
}

fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<String> = lines.map(|line| format!("  {line}")).collect();
    if lines.is_empty() { "  nothing".into() } else { lines.join("\n") }
}
