//! Suggestions for mistakes in a document.

use super::problem::Problem;
use super::rule::RULE;
use super::table::DOCUMENT;
use super::table::limits::{ENTRY, MATCH};

/// Maximum length of compared words.
const LONGEST: usize = 40;

/// Maximum number of reported lines without a space.
const ENOUGH: usize = 200;

/// `; did you mean …?` if one of `names` resembles `word`, else an empty text.
pub fn did_you_mean(word: &str, names: &[&str]) -> String {
    match nearest(word, names) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let word = word.to_ascii_lowercase();
    if word.len() > LONGEST {
        return None;
    }
    let mut best = None;
    for &name in names {
        let lower = name.to_ascii_lowercase();
        let begins = word.len().min(lower.len()) >= 3
            && (lower.starts_with(&word) || word.starts_with(&lower));
        let tolerated = if begins { LONGEST } else { word.len().max(name.len()) / 3 };
        let distance = strsim::osa_distance(&word, &lower);
        if distance <= tolerated && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// A hint about an unknown key, or an empty text.
pub fn of_key(key: &str, known: &[&str]) -> String {
    if key == "<<" {
        return "; merge keys are not supported: write the keys out".into();
    }
    let hints = [missing_space(key), elsewhere(key), did_you_mean(key, known)];
    hints.into_iter().find(|hint| !hint.is_empty()).unwrap_or_default()
}

/// The right mapping for a misplaced key, or an empty text.
fn elsewhere(key: &str) -> String {
    let places = [
        (&DOCUMENT, "at the top, next to `limits`"),
        (&ENTRY, "next to `rules`"),
        (&MATCH, "in `match` or `unless`"),
        (&RULE, "in a rule"),
    ];
    let places = places.iter().filter(|(mapping, _)| mapping.key(key).is_some());
    let places: Vec<_> = places.map(|(_, place)| *place).collect();
    match places.as_slice() {
        [] => String::new(),
        _ => format!("; `{key}` belongs {}", places.join(", or ")),
    }
}

/// A hint if `text` is a known key and its value without the space that YAML requires.
pub fn missing_space(text: &str) -> String {
    match split(text) {
        Some((key, value)) => {
            let value = value.split_whitespace().next().unwrap_or_default();
            format!("; a space is missing after the colon: write `{key}: {value}`")
        }
        None => String::new(),
    }
}

/// Reports every missing space after a colon in a text that is not valid YAML.
pub fn missing_spaces(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, written) in text.lines().enumerate() {
        let mut before = 0;
        for piece in written.split_inclusive(['{', '[', ',']) {
            if problems.len() == ENOUGH {
                return problems;
            }
            let length = piece.chars().count();
            if let Some((key, value)) = split(piece.trim_start_matches([' ', '-'])) {
                let column = before + length - value.chars().count();
                problems.push(missing_at(line + 1, column + 1, key, value));
            }
            before += length;
        }
    }
    problems
}

fn missing_at(line: usize, column: usize, key: &str, value: &str) -> Problem {
    let bare = value.trim_end_matches([' ', ',', '{', '[', '}', ']']);
    let value = if bare.is_empty() { value.trim_end() } else { bare };
    let message = if value.chars().count() <= LONGEST {
        format!("a space is missing after the colon: write `{key}: {value}`")
    } else {
        format!("a space is missing after the colon of `{key}:`")
    };
    Problem { position: Some((line, column)), path: String::new(), message }
}

/// A known key, and the text that follows its colon without a space.
fn split(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let known = [&DOCUMENT, &ENTRY, &RULE].iter().any(|mapping| mapping.key(key).is_some());
    let glued = value.chars().next().is_some_and(|next| !next.is_ascii_whitespace());
    (known && glued).then_some((key, value))
}
