//! A worker, its clients and its operator: scenarios in files, with their outcomes.
//!
//! A scenario is a configuration followed by steps, each after `> `. The gateway's environment has a `DIANA_TOKEN`.
//!
//! | key | meaning |
//! | --- | --- |
//! | `get`, `post` | an operator's request for this path below `/.diana`, where `KEY` stands for the last caller's key |
//! | `bearer` | another token for an operator's request |
//! | `explain` | adds the header for an explanation to the request |
//! | `times` | number of requests |
//! | `wait` | no request: advances the clock |
//! | `redis` | no request: Redis replies to the last call with these numbers, or not at all |
//! | `configure`, `end` | no request: the root of this number is configured, or ends |
//! | `metrics` | no request: the counts whose names contain this text |
//!
//! All other keys are those of `steps::request`.

use std::fmt::Write;

use kit::fake::{FakeEnvironment, FakeRequest};
use serde_json::Value as Json;
use serde_yaml::{Mapping, Value};

use super::{FakeHost, Thread};
use crate::support::documents::{assert_outcomes, outcome};
use crate::support::redis::decides;
use crate::support::steps;

const TOKEN: &str = "a token of 24 characters";
/// The number of the first stream.
const FIRST: u32 = 10;

#[test]
fn scenarios_match_their_transcripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/it/worker/scenarios");
    assert_outcomes(folder, |_, _, scenario| {
        let (configuration, steps) = steps::split(scenario);
        let mut operator = Operator::new(&configuration);
        let mut transcript = outcome("", &operator.events());
        for (line, keys) in steps {
            let result = operator.take(keys);
            let result = if result.is_empty() { "nothing" } else { result.trim_end() };
            transcript += &outcome(line, result);
        }
        transcript
    });
}

/// A worker, its clients and its operator.
struct Operator {
    thread: Thread,
    streams: u32,
    /// The key of the caller in the last refusal or reply.
    key: String,
    /// The requests with an explanation.
    explained: Vec<u32>,
    resumed: usize,
}

impl Operator {
    fn new(configuration: &str) -> Operator {
        let environment = FakeEnvironment([("DIANA_TOKEN".into(), TOKEN.into())].into());
        let mut thread = Thread::of(FakeHost { environment, ..FakeHost::default() });
        assert!(thread.configure(1, configuration), "{:?}", thread.host.lines());
        thread.host.lines();
        Operator { thread, streams: FIRST, key: String::new(), explained: Vec::new(), resumed: 0 }
    }

    fn take(&mut self, mut keys: Mapping) -> String {
        if let Some(pause) = keys.remove("wait") {
            self.thread.pass(steps::ticks(&pause));
            return self.events();
        }
        if let Some(numbers) = keys.remove("redis") {
            self.reply(&numbers);
            return self.events();
        }
        if let Some(configuration) = keys.remove("configure") {
            let root = configuration[0].as_u64().unwrap() as u32;
            assert!(self.thread.configure(root, &steps::text(&configuration[1])));
            self.thread.host.lines();
            return "in force".into();
        }
        if let Some(root) = keys.remove("end") {
            self.thread.end(root.as_u64().unwrap() as u32);
            return self.events();
        }
        if let Some(word) = keys.remove("metrics") {
            let word = steps::text(&word);
            let counts = self.thread.host.counts.borrow();
            let counts = counts.iter().filter(|(name, _)| name.contains(&word));
            return counts.map(|(name, count)| format!("  {name} {count}\n")).collect();
        }
        let times = keys.remove("times").map_or(1, |times| times.as_u64().unwrap());
        let explains = keys.remove("explain").is_some();
        let request = self.request(keys);
        let request = if explains { request.header("x-why", TOKEN) } else { request };
        let lines = (0..times).map(|_| self.send(&request, explains)).collect();
        steps::counted(lines)
    }

    /// Redis replies to the last call.
    fn reply(&mut self, numbers: &Value) {
        let call = self.thread.host.calls.borrow().len() as u32 - 1;
        match numbers {
            Value::Sequence(numbers) => {
                let numbers: Vec<i64> = numbers.iter().map(|it| it.as_i64().unwrap()).collect();
                self.thread.answer(1, call, Some(200), &decides(&numbers));
            }
            _ => self.thread.lose(1, call),
        }
    }

    fn request(&mut self, mut keys: Mapping) -> FakeRequest {
        let bearer = keys.remove("bearer").map_or(TOKEN.into(), |token| steps::text(&token));
        for (key, method) in [("get", "GET"), ("post", "POST")] {
            let Some(path) = keys.remove(key) else { continue };
            let path = format!("/.diana{}", steps::text(&path).replace("KEY", &self.key));
            keys.insert("path".into(), path.into());
            keys.insert("method".into(), method.into());
            keys.insert("authorization".into(), format!("Bearer {bearer}").into());
        }
        steps::request(&keys)
    }

    fn send(&mut self, request: &FakeRequest, explains: bool) -> String {
        let stream = self.streams;
        self.streams += 1;
        if explains {
            self.explained.push(stream);
        }
        if self.thread.ask(1, stream, request.clone()) {
            let headers = self.thread.host.removed_headers.take();
            let without: String = headers.iter().map(|name| format!(" without {name}")).collect();
            let why = self.explanation(stream);
            return format!("goes on{without}{why}\n{}", self.events()).trim_end().into();
        }
        self.thread.host.removed_headers.take();
        let events = self.events();
        if events.is_empty() { "waits".into() } else { events }
    }

    /// The explanation in the response to a request with one.
    fn explanation(&mut self, stream: u32) -> String {
        if !self.explained.contains(&stream) {
            return String::new();
        }
        let fields = self.thread.responds(stream).unwrap_or_default();
        let explanation = fields.get("x-why");
        explanation.map_or(" unexplained".into(), lines)
    }

    /// The replies, refusals, resumed requests, marks and log lines since the last step.
    fn events(&mut self) -> String {
        let mut events = String::new();
        let mut why = String::new();
        for (_, reply) in self.thread.host.replies.take() {
            if reply.details == "diana_refused" {
                why = reply.headers.get("x-why").map_or(String::new(), lines);
                continue;
            }
            let body = String::from_utf8(reply.body.to_vec()).unwrap();
            writeln!(events, "{} {body}", reply.status).unwrap();
            let body: Json = serde_json::from_str(&body).unwrap();
            if let Some(key) = body["callers"][0]["key"].as_str() {
                self.key = key.into();
            }
            for (name, value) in reply.headers.iter().filter(|(name, _)| !name.starts_with('c')) {
                writeln!(events, "{name}: {value}").unwrap();
            }
        }
        if let Some((_, refusal)) = self.thread.host.refusals.take().pop() {
            let state = refusal.by.state();
            let kind = state.split(' ').next().unwrap();
            writeln!(events, "{kind} by {}{why}", refusal.by.rule).unwrap();
            self.key = state.split_once(" key=").unwrap().1.into();
        }
        let resumed = self.thread.host.resumed.borrow().clone();
        for stream in resumed.iter().skip(self.resumed) {
            let number = stream - FIRST + 1;
            let why = self.explanation(*stream);
            writeln!(events, "request {number} goes on{why}").unwrap();
        }
        self.resumed = resumed.len();
        for mark in self.thread.host.marks.take() {
            writeln!(events, "marked {mark}").unwrap();
        }
        for line in self.thread.host.lines() {
            writeln!(events, "log: {line}").unwrap();
        }
        events.trim_end().into()
    }
}

/// A line for each rule.
fn lines(rules: &str) -> String {
    let rules: Json = serde_json::from_str(rules).unwrap();
    let mut lines = String::new();
    for rule in rules.as_array().unwrap() {
        write!(lines, "\n  {rule}").unwrap();
    }
    lines
}
