//! Paths: for any spelling, the rule of a path applies if a router or an upstream may read it as
//! that path.

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use std::rc::Rc;

const RULES: &str = "limits: [{Url: /share/qq, rules: [{name: all, actor: all, unit: day, rpu: 1, algo: W, scope: local}]}]";

pub fn run(input: &[u8]) {
    let admitted = admitted(input);
    let covers = |path: &[u8]| path == b"/share/qq" || path.starts_with(b"/share/qq/");
    for reading in [decoded(input), literal(input), resolved(input)] {
        if covers(&reading) {
            assert_eq!(admitted, 1, "{}", String::from_utf8_lossy(input));
        }
    }
}

/// The path without query and fragment.
fn literal(path: &[u8]) -> Vec<u8> {
    path.iter().take_while(|byte| !b"?#".contains(byte)).copied().collect()
}

/// The path in an Envoy that normalises paths and merges slashes, and keeps escaped ones.
fn resolved(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let literal = literal(path);
    for segment in literal.split(|byte| b"/\\".contains(byte)) {
        match segment {
            b"" | b"." => {}
            b".." => _ = segments.pop(),
            name => segments.push(name),
        }
    }
    segments.iter().flat_map(|segment| [b"/", *segment].concat()).collect()
}

/// The number of admitted requests of three.
fn admitted(path: &[u8]) -> usize {
    let policy = diana_config::Reader::default()
        .policy(RULES.as_bytes())
        .unwrap_or_else(|problems| panic!("{problems}"));
    let mut limiter =
        Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, Rc::new(FakeSharedData::default()))
            .expect("it can be built");
    let request = FakeRequest { path: Some(path.into()), ..FakeRequest::get("/") };
    let clock = FakeClock::default();
    (0..3).filter(|_| matches!(limiter.decide(&request, 0, &clock), Verdict::Admit(..))).count()
}

/// The path in an upstream that decodes everything first.
fn decoded(path: &[u8]) -> Vec<u8> {
    let end = path.iter().position(|byte| b"?#".contains(byte)).unwrap_or(path.len());
    let plain = super::decoded(&path[..end]);
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in plain.split(|byte| b"/\\".contains(byte)) {
        match segment.split(|byte| *byte == b';').next().unwrap_or_default() {
            b"" | b"." => {}
            b".." => _ = segments.pop(),
            name => segments.push(name),
        }
    }
    segments.iter().flat_map(|segment| [b"/", *segment].concat()).collect()
}
