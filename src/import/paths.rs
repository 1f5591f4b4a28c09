//! Paths of locations, as paths of Diana's entries.

use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// A path without slashes at its end.
pub(crate) fn bare(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => "/",
        bare => bare,
    }
}

/// Returns true if a path covers another one, by whole segments.
pub(crate) fn covers(path: &str, other: &str) -> bool {
    let rest = other.strip_prefix(path);
    path == "/" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Removes paths that others cover.
pub(crate) fn keep_shortest(paths: &mut BTreeSet<String>) {
    let all = paths.clone();
    let has_root = all.contains("/");
    paths.retain(|path| {
        let is_covered = ancestors(path).any(|parent| all.contains(parent));
        !is_covered && (path == "/" || !has_root)
    });
}

/// The paths above a path, the longest first, without `/`.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.rmatch_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
    ends.filter_map(|end| path.get(..end))
}

/// The whole segments with which every path of a regular expression begins, and whether it covers
/// all paths below them.
pub(crate) fn of_regex(regex: &str) -> (String, bool) {
    const SPECIAL: &str = "\\[](){}*+?|^$.";
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    // An alternative may begin differently.
    if !regex.starts_with('/') || has_alternatives(regex) {
        return ("/".into(), false);
    }
    let mut literal = String::new();
    let mut rest = regex;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        let is_repeated = |rest: &str| rest.starts_with(['*', '+', '?', '{']);
        match letter {
            '\\' => match after.chars().next() {
                Some(escaped) if !escaped.is_alphanumeric() => {
                    let next = after.get(escaped.len_utf8()..).unwrap_or_default();
                    if is_repeated(next) {
                        break;
                    }
                    literal.push(escaped);
                    rest = next;
                }
                _ => break,
            },
            // Most often a dot in a name is meant.
            '.' if !is_repeated(after) => {
                literal.push('.');
                rest = after;
            }
            _ if SPECIAL.contains(letter) || is_repeated(after) => break,
            _ => {
                literal.push(letter);
                rest = after;
            }
        }
    }
    let ends_segment = ["(/|$)", "(/.*)?", "(/|$)(.*)"].iter().any(|end| rest.starts_with(end));
    let is_whole = regex == "/"
        || matches!(rest, "(.*)" | ".*" | "(/|$)" | "(/|$)(.*)" | "(/.*)?" | "(/.*)?$");
    if ends_segment || literal.ends_with('/') || rest.is_empty() {
        return (bare(&literal).to_owned(), is_whole);
    }
    let end = literal.rfind('/').unwrap_or(0);
    (bare(literal.get(..end).unwrap_or_default()).to_owned(), false)
}

/// Returns true if a regular expression has an alternative outside of parentheses.
fn has_alternatives(regex: &str) -> bool {
    let (mut depth, mut is_escaped) = (0_u32, false);
    for letter in regex.chars() {
        match letter {
            _ if is_escaped => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    false
}
