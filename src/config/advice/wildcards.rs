//! Paths with the text of a wildcard in a form that Diana does not have, which is taken literally.

use std::collections::BTreeMap;

use super::about::{About, Advised};
use diana_policy::path::{Segment, WILDCARDS};
use diana_policy::{Limit, Prefix, Rule};

/// Texts that routers use for a part of a path, and that paths of requests hardly contain.
const MARKS: &[&str] = &["*", "{", "}", "<", ">", "[", "]", "^", "|", ".+"];

/// A finding for each path with a wildcard, with the path to write instead.
pub fn find(about: &About<'_>) -> Vec<Advised> {
    let policy = about.policy;
    let mut places: Vec<(&str, &[Prefix], Vec<&str>)> =
        vec![("except.paths", &policy.except.paths, vec![])];
    for Limit { urls, rules, except, .. } in &policy.limits {
        let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        places.push(("Url", urls, names.clone()));
        places.push(("except.paths", &except.paths, names));
        for Rule { name, except, .. } in rules {
            places.push(("except.paths", &except.paths, vec![name]));
        }
    }
    // The rules by the key and the path.
    let mut found: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for (key, paths, names) in &places {
        for message in paths.iter().filter_map(|path| of_path(key, path)) {
            let rules = found.entry((key, message)).or_default();
            rules.extend(names.iter().map(|name| (*name).to_string()));
        }
    }
    found.into_iter().map(|((_, message), rules)| (message, rules)).collect()
}

fn of_path(key: &str, path: &Prefix) -> Option<String> {
    let (mut written, mut instead, mut is_odd) = (String::new(), String::new(), false);
    let segments = spelled(path);
    for (at, (spelled, is_name)) in segments.iter().enumerate() {
        let fixed = match is_name {
            true if is_wildcard(spelled) => {
                is_odd = true;
                let fixed = fixed(spelled, at + 1 == segments.len());
                // A name stands for one segment only.
                let repeats = fixed.starts_with('{') && instead.contains(&format!("/{fixed}"));
                if repeats { "*".into() } else { fixed }
            }
            _ => spelled.clone(),
        };
        written += &format!("/{spelled}");
        instead += &if fixed.is_empty() { fixed } else { format!("/{fixed}") };
    }
    if instead.is_empty() {
        instead.push('/');
    }
    // An exemption of all paths would be no remedy.
    let is_wide = instead.split('/').all(|name| name.is_empty() || name.starts_with(['*', '{']));
    let remedy = match key {
        "except.paths" if is_wide => "write the paths".into(),
        _ => format!("write for example `{instead}`"),
    };
    is_odd.then(|| {
        format!(
            "`{written}` in `{key}` contains text that is taken literally, so it covers hardly any \
             path; {WILDCARDS}: {remedy}"
        )
    })
}

/// The segments of a path as written, and whether each is a literal name. The regular expression
/// `[^/]+` is in one of them.
fn spelled(path: &Prefix) -> Vec<(String, bool)> {
    let mut segments: Vec<(String, bool)> = Vec::new();
    for segment in path.segments() {
        let (text, is_name) = match segment {
            Segment::Name(name) => (String::from_utf8_lossy(name).into_owned(), true),
            Segment::Any(None) => ("*".into(), false),
            Segment::Any(Some(name)) => (format!("{{{name}}}"), false),
        };
        match segments.last_mut() {
            Some((open, _)) if open.ends_with("[^") => *open += &format!("/{text}"),
            _ => segments.push((text, is_name)),
        }
    }
    segments
}

/// The wildcard for a segment that looks like one elsewhere: `:id`, `<int:id>`, `{id:[0-9]+}`.
fn fixed(segment: &str, is_last: bool) -> String {
    let text = segment.trim_start_matches('^').trim_end_matches('$');
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || "_-".contains(sign);
    let inner = match (text.chars().next(), text.chars().next_back()) {
        (Some('<'), Some('>')) => text.trim_matches(['<', '>']).rsplit(':').next(),
        (Some('{'), Some('}')) => text.trim_matches(['{', '}']).split([':', '=']).next(),
        (Some('['), Some(']')) => Some(text.trim_matches(['[', ']'])),
        (Some(':'), _) => text.get(1..),
        _ => None,
    };
    match inner.filter(|name| Prefix::is_name(name)) {
        Some(name) => format!("{{{name}}}"),
        None if text.chars().all(is_part) => text.into(),
        None if is_last && matches!(text, ".*" | ".+" | "(.*)" | "(.+)") => "**".into(),
        None => "*".into(),
    }
}

/// Returns true if a segment looks like a wildcard, a parameter such as `:id`, or a regular
/// expression.
fn is_wildcard(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
        || text.ends_with('$')
        || text.len() > 1 && text.starts_with(':')
}
