//! Requests to one engine and its decisions: scenarios in files, and a transcript beside each file.
//!
//! A scenario is a configuration and then steps, each behind `> `: a request, or something between requests.
//!
//! | key | meaning |
//! | --- | --- |
//! | `path`, `method`, `host`, `from`, `account` | parts of a request; without them `GET /` of `example.com` |
//! | `claims`, `metadata` | its dynamic metadata: text, or a number as the host has it |
//! | `times`, `every` | the request is sent so often, with a pause behind each |
//! | `callers` | so many accounts send the request |
//! | `report` | the whole report is written, not only the decision |
//! | `wait`, `upkeep`, `metrics`, `retire` | no request: time passes, the engine does its upkeep, hands over metrics, retires |
//!
//! All other keys are headers. `SCOPE` in a configuration stands for `local` and `gateway`, which decide the same.

use std::fmt::Write;

use diana_core::permit::End;
use diana_core::report::{Record, Refusal, Report};
use diana_core::verdict::Verdict;
use kit::fake::FakeRequest;
use kit::told::Told;
use serde_yaml::{Mapping, Value};

use super::{Gate, Lines, field};
use crate::documents::assert_snapshots;

const STEP: &str = "> ";

#[test]
fn scenarios_have_the_decisions_of_their_transcripts() {
    assert_snapshots(concat!(env!("CARGO_MANIFEST_DIR"), "/it/engine/scenarios"), |_, _, text| {
        let [local, gateway] = ["local", "gateway"].map(|scope| transcript(text, scope));
        assert_eq!(local, gateway);
        local
    });
}

/// The steps of a scenario, and below each what becomes of it.
fn transcript(text: &str, scope: &str) -> String {
    let (steps, configuration): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with(STEP));
    let mut gate = Gate::new(&configuration.join("\n").replace("SCOPE", scope));
    let mut transcript = String::new();
    for step in steps {
        let keys: Mapping = serde_yaml::from_str(step.strip_prefix(STEP).unwrap()).unwrap();
        writeln!(transcript, "{step}\n{}", Step(keys).take(&mut gate)).unwrap();
    }
    if text.contains("SCOPE") {
        transcript = transcript.replace(&format!("scope={scope}"), "scope=SCOPE");
    }
    transcript
}

struct Step(Mapping);

impl Step {
    fn take(mut self, gate: &mut Gate) -> String {
        if let Some(pause) = self.0.remove("wait") {
            gate.wait(micros(&pause));
            return "later".into();
        }
        if self.0.remove("upkeep").is_some() {
            gate.engine.tidy(gate.clock.0.get());
            return "done".into();
        }
        if let Some(word) = self.0.remove("metrics") {
            let word = text(&word);
            let lines = gate.metrics();
            return join(lines.iter().filter(|line| line.contains(&word)).map(String::as_str));
        }
        if self.0.remove("retire").is_some() {
            let lines = Lines::default();
            gate.engine.retire("ns", gate.clock.0.get(), &lines);
            return join(lines.0.take().iter().map(String::as_str));
        }
        self.send(gate)
    }

    /// Sends requests, and counts those in a row that have the same decision.
    fn send(mut self, gate: &mut Gate) -> String {
        let mut number = |key: &str| self.0.remove(key).map_or(1, |it| it.as_u64().unwrap());
        let (times, callers) = (number("times"), number("callers"));
        let pause = self.0.remove("every").map_or(0, |pause| micros(&pause));
        let is_whole = self.0.remove("report").is_some();
        let request = self.request();
        let mut decisions: Vec<(u64, String)> = Vec::new();
        for caller in 0..callers {
            let mut request = request.clone();
            if callers > 1 {
                request = request.header("x-account-id", format!("account-{caller}"));
            }
            for _ in 0..times {
                let decision = decide(gate, &request, is_whole);
                match decisions.last_mut() {
                    Some((count, last)) if *last == decision => *count += 1,
                    _ => decisions.push((1, decision)),
                }
                gate.wait(pause);
            }
        }
        let lines = decisions.into_iter().map(|(count, decision)| match count {
            1 => decision,
            _ => format!("{count} times {decision}"),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn request(self) -> FakeRequest {
        let mut request = FakeRequest::get("/");
        for (key, value) in self.0 {
            let key = text(&key);
            match key.as_str() {
                "path" => request.path = bytes(&value),
                "method" => request.method = bytes(&value),
                "host" => request.authority = bytes(&value),
                "from" => request = request.from(&text(&value)),
                "account" => request = header(request, "x-account-id", &value),
                "claims" => request = metadata(request, "envoy.filters.http.jwt_authn", &value),
                "metadata" => {
                    for (namespace, value) in value.as_mapping().unwrap() {
                        request = metadata(request, &text(namespace), value);
                    }
                }
                _ => request = header(request, &key, &value),
            }
        }
        request
    }
}

/// A list has a header several times.
fn header(request: FakeRequest, name: &str, value: &Value) -> FakeRequest {
    match value {
        Value::Sequence(values) => {
            values.iter().fold(request, |request, value| header(request, name, value))
        }
        value => request.header(name, text(value)),
    }
}

/// All leaves below a namespace.
fn metadata(request: FakeRequest, namespace: &str, value: &Value) -> FakeRequest {
    fn add(request: FakeRequest, path: &[&str], value: &Value) -> FakeRequest {
        match value {
            Value::Mapping(keys) => keys.iter().fold(request, |request, (key, value)| {
                add(request, &[path, &[key.as_str().unwrap()]].concat(), value)
            }),
            Value::Number(number) => request.property(path, number.as_f64().unwrap().to_le_bytes()),
            value => request.property(path, text(value)),
        }
    }
    add(request, &["metadata", "filter_metadata", namespace], value)
}

/// The decision about a request, in one line, and the report below it if it is wanted.
fn decide(gate: &mut Gate, request: &FakeRequest, is_whole: bool) -> String {
    let now = gate.clock.0.get().mono;
    match gate.decide(request) {
        Verdict::Admit(_, None) => "admitted".into(),
        Verdict::Admit(_, Some(report)) if is_whole => format!("admitted{}", reported(&report)),
        Verdict::Admit(..) => "admitted".into(),
        Verdict::Hold(held) => {
            held.permit.finish(End::Served);
            let rule = held.report.by.as_ref().map_or("none", |by| &by.rule);
            let whole = if is_whole { reported(&held.report) } else { String::new() };
            format!("held for {} ms by {rule}{whole}", (held.until - now) as f64 / 1000.0)
        }
        Verdict::Refuse(refusal) if is_whole => {
            format!("{}{}", refused(&refusal), whole(&refusal))
        }
        Verdict::Refuse(refusal) => refused(&refusal),
        Verdict::Ask { .. } => "waits for others".into(),
    }
}

/// A refusal in one line.
fn refused(refusal: &Refusal) -> String {
    let state = refusal.by.state();
    let kind = state.split(' ').next().unwrap_or_default();
    let mut line = format!("{kind} by {}", refusal.by.rule);
    if let Some(seconds) = field(&refusal.headers(), "retry-after") {
        write!(line, ", retry after {seconds} s").unwrap();
    }
    if refusal.is_logged {
        line += ", logged";
    }
    line
}

fn reported(report: &Report) -> String {
    let mut lines = fields(&report.headers());
    if let Some((name, rules)) = &report.mark {
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

fn fields(fields: &[(&str, String)]) -> String {
    let mut lines = String::new();
    for (name, value) in fields {
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

/// A duration as the configuration writes it.
fn micros(value: &Value) -> u64 {
    let written = text(value);
    let digits = written.find(|letter: char| !letter.is_ascii_digit()).unwrap();
    let (number, unit) = written.split_at(digits);
    let unit = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => panic!("{written}: no unit"),
    };
    number.parse::<u64>().unwrap() * unit
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        other => panic!("{other:?} is no text"),
    }
}

/// Nothing where the value is `~`, as in a request without a path.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    (!value.is_null()).then(|| text(value).into_bytes())
}

fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<String> = lines.map(|line| format!("  {line}")).collect();
    if lines.is_empty() { "  nothing".into() } else { lines.join("\n") }
}
