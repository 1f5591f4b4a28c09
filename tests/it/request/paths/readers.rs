//! Routers and upstreams: the steps of each on the text of a path.

use super::{Rng, covering, index, spelling};
use kit::seed;

pub fn decode(path: &str, wanted: impl Fn(u8) -> bool) -> String {
    let mut out = Vec::new();
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let code: String = bytes.clone().take(2).map(char::from).collect();
        let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u8::from_str_radix(&code, 16) {
            Ok(meant) if byte == b'%' && is_code && wanted(meant) => {
                out.push(meant);
                bytes.nth(1);
            }
            _ => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}

fn merge(path: &str) -> String {
    let mut path = path.to_owned();
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    path
}

/// Removes dot segments as in RFC 3986: an empty segment is an ordinary one.
fn resolve(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        match *segment {
            ".." => _ = out.pop(),
            "." => {}
            name => out.push(name),
        }
        if at + 1 == segments.len() && matches!(*segment, "." | "..") {
            out.push("");
        }
    }
    format!("/{}", out.join("/"))
}

fn without_parameters(path: &str) -> String {
    let bare = |segment: &str| segment.split(';').next().unwrap().to_owned();
    path.split('/').map(bare).collect::<Vec<_>>().join("/")
}

/// The path in an Envoy with these settings, one bit each.
pub fn envoy(path: &str, settings: u32) -> String {
    let mut path = path.to_owned();
    if settings & 1 != 0 {
        path = decode(&path, |byte| b"/\\".contains(&byte));
    }
    if settings & 2 != 0 {
        let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        path = resolve(&decode(&path.replace('\\', "/"), unreserved));
    }
    if settings & 4 != 0 { merge(&path) } else { path }
}

/// The path in an upstream: some of these steps in order.
pub fn upstream(path: &str, steps: u32) -> String {
    let all: [fn(&str) -> String; 9] = [
        merge,
        without_parameters,
        resolve,
        |path| decode(path, |_| true),
        |path| path.replace('\\', "/"),
        without_parameters,
        merge,
        resolve,
        merge,
    ];
    let mut path = path.to_owned();
    for (at, step) in all.iter().enumerate() {
        if steps >> at & 1 != 0 {
            path = step(&path);
        }
    }
    path
}

pub fn falls_under(path: &str, prefix: &str) -> bool {
    path == prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
}

#[test]
fn every_interpretation_of_a_path_is_limited() {
    const PREFIXES: [&str; 4] = ["/hello", "/a", "/a/hello", "/a/b"];
    let index = index(&PREFIXES.map(|prefix| (prefix, false)));
    let mut random = Rng::with_seed(seed::next());
    let mut odd = 0;
    for _ in 0..300 {
        let path = spelling(&mut random);
        let covering_entries = covering(&index, &path);
        let bare = path.split(['?', '#']).next().unwrap();
        for routed in (0..8).map(|settings| envoy(bare, settings)) {
            for seen in (0..1 << 9).map(|steps| upstream(&routed, steps)).chain([routed.clone()]) {
                for (at, prefix) in PREFIXES.iter().enumerate() {
                    if falls_under(&seen, prefix) {
                        odd += u32::from(!falls_under(bare, prefix));
                        assert!(
                            covering_entries.contains(&at),
                            "{path} is {routed} and {seen}: {prefix}"
                        );
                    }
                }
            }
        }
    }
    assert!(odd > 2_000, "{odd} readings were not as written");
}
