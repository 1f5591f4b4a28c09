//! Paths with the text of a wildcard, which is taken literally.

use std::collections::BTreeMap;

use super::Advice;
use diana_policy::{Except, Limit, Prefix, Rule};

/// Texts that routers use for a part of a path, and that paths of requests hardly contain.
const MARKS: &[&str] = &["*", "{", "}", "<", ">", "[", "]", "^", "|", ".+"];

/// Advice about each path with a wildcard, with the path to write instead.
pub fn advice<'l>(limits: &'l [Limit], except: &'l Except) -> Vec<Advice> {
    let mut places: Vec<(&str, &'l [Prefix], Vec<&str>)> =
        vec![("except.paths", &except.paths, vec![])];
    for Limit { urls, rules, except, .. } in limits {
        let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        places.push(("Url", urls, names.clone()));
        places.push(("except.paths", &except.paths, names));
        let of_rule =
            |rule: &'l Rule| ("except.paths", &*rule.except.paths, vec![rule.name.as_str()]);
        places.extend(rules.iter().map(of_rule));
    }
    // The rules by the key and the path.
    let mut found: BTreeMap<(&str, &[u8]), Vec<String>> = BTreeMap::new();
    for (key, paths, names) in &places {
        let paths = paths.iter().map(Prefix::path);
        for path in paths.filter(|path| fixed(path).is_some()) {
            let rules = found.entry((key, path)).or_default();
            rules.extend(names.iter().map(|name| (*name).to_string()));
        }
    }
    found.into_iter().map(|((key, path), rules)| of_path(key, path, rules)).collect()
}

fn of_path(key: &str, path: &[u8], rules: Vec<String>) -> Advice {
    let instead = fixed(path).unwrap_or(path);
    let [path, instead] = [path, instead].map(String::from_utf8_lossy);
    // An exemption of all paths would be no remedy.
    let remedy = match (key, &*instead) {
        ("except.paths", "/") => "write the paths".to_string(),
        _ => format!("write `{instead}`, which covers all paths below it"),
    };
    let message = format!(
        "`{path}` in `{key}` is taken literally, since paths have no wildcards, so it covers no other path; {remedy}"
    );
    Advice { message, rules, is_mistake: true }
}

/// The segments before the first one with a wildcard. `None` if there is no wildcard.
fn fixed(path: &[u8]) -> Option<&[u8]> {
    let mut start = 0;
    for segment in path.split(|byte| *byte == b'/') {
        if is_wildcard(segment) {
            return Some(path.get(..start.max(2) - 1).unwrap_or(path));
        }
        start += segment.len() + 1;
    }
    None
}

/// Returns true if a segment looks like a wildcard, a parameter such as `:id`, or a regular
/// expression.
fn is_wildcard(segment: &[u8]) -> bool {
    let text = String::from_utf8_lossy(segment);
    MARKS.iter().any(|mark| text.contains(mark))
        || text.len() > 1 && (text.starts_with(':') || text.ends_with('$'))
}
