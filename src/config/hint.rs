//! Suggestions for mistakes in a document.

use std::fmt::Display;

use super::mapping::{Allowed, Mapping};
use super::problem::Problem;
use diana_policy::time::{DAY, DURATIONS, Micros, SECOND, amount, spell};
use diana_policy::tree::Tree;

/// A mapping, and where its keys belong.
pub type Place = (&'static Mapping, &'static str);

/// Maximum length of compared words.
const LONGEST: usize = 40;

/// Maximum number of reported lines without a space.
const ENOUGH: usize = 200;

/// A message with the most helpful part first: the finding, the hint if there is one, and then the
/// allowed values, which may be many.
pub fn message(found: &str, hint: &str, allowed: &dyn Display) -> String {
    match hint {
        "" => format!("{found}, allowed: {allowed}"),
        question if question.ends_with('?') => format!("{found}; {question} allowed: {allowed}"),
        hint => format!("{found}; {hint}; allowed: {allowed}"),
    }
}

/// `did you mean …?` if one of `names` resembles `word`, else an empty text.
pub fn did_you_mean(word: &str, names: &[&str]) -> String {
    match nearest(word, names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => String::new(),
    }
}

/// Returns true if `word` is one of `names`, or resembles one.
pub fn is_near(word: &str, names: &[&str]) -> bool {
    nearest(word, names).is_some()
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
pub fn of_key(key: &str, known: &[&str], places: &[Place]) -> String {
    let hints = [missing_space(key, places), elsewhere(key, places), did_you_mean(key, known)];
    hints.into_iter().find(|hint| !hint.is_empty()).unwrap_or_default()
}

/// The right mapping for a misplaced key, or an empty text.
fn elsewhere(key: &str, places: &[Place]) -> String {
    let places = places.iter().filter(|(mapping, _)| mapping.key(key).is_some());
    let places: Vec<_> = places.map(|(_, place)| *place).collect();
    match places.as_slice() {
        [] => String::new(),
        _ => format!("`{key}` belongs {}", places.join(", or ")),
    }
}

/// A hint if `text` is a known key and its value without the space that YAML requires.
pub fn missing_space(text: &str, places: &[Place]) -> String {
    match split(text, places) {
        Some((key, value)) => {
            let value = value.split_whitespace().next().unwrap_or_default();
            format!("a space is missing after the colon: write `{key}: {value}`")
        }
        None => String::new(),
    }
}

/// The units of durations as people write them, with their lengths in ticks.
const UNITS: [(&[&str], Micros); 6] = [
    (&["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"], 1_000),
    (&["s", "sec", "secs", "second", "seconds"], SECOND),
    (&["m", "min", "mins", "minute", "minutes"], 60 * SECOND),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600 * SECOND),
    (&["d", "day", "days"], DAY),
    (&["w", "wk", "week", "weeks"], 7 * DAY),
];

/// A hint if `tree` is an allowed duration in another spelling, such as `15min`, `1.5h`, `1h30m` or
/// `2 seconds`, or an empty text.
pub fn duration(tree: &Tree, allowed: &Allowed) -> String {
    let Allowed::Duration(min, max) = allowed.number() else { return String::new() };
    let text = tree.text().filter(|text| amount(text, &DURATIONS).is_none());
    let ticks = text.and_then(other_spelling).filter(|ticks| (min..=max).contains(ticks));
    ticks.map_or_else(String::new, |ticks| format!("write `{}`", spell(ticks)))
}

/// The whole milliseconds of a duration in another spelling, in ticks.
fn other_spelling(text: &str) -> Option<Micros> {
    let text = text.to_ascii_lowercase().replace([' ', '_', ','], "");
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let (mut rest, mut sum) = (text.as_str(), 0_u64);
    while !rest.is_empty() {
        let letters = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        let (number, after) = rest.split_at(letters);
        let digits = after.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, after) = after.split_at(digits.unwrap_or(after.len()));
        let (_, length) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let scale = 10_u64.checked_pow(part.len().try_into().ok()?)?;
        let parts = whole.parse::<u64>().ok()?.checked_mul(scale)?;
        let parts = parts.checked_add(part.parse().ok()?)?.checked_mul(*length)?;
        sum = sum.checked_add(parts / scale).filter(|_| parts.is_multiple_of(scale))?;
        rest = after;
    }
    Some(sum).filter(|ticks| ticks.is_multiple_of(1_000))
}

/// Reports every missing space after a colon in a text that is not valid YAML.
pub fn missing_spaces(text: &str, places: &[Place]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, written) in text.lines().enumerate() {
        let mut before = 0;
        for piece in written.split_inclusive(['{', '[', ',']) {
            if problems.len() == ENOUGH {
                return problems;
            }
            let length = piece.chars().count();
            if let Some((key, value)) = split(piece.trim_start_matches([' ', '-']), places) {
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
    Problem::of_text(Some((line, column)), message)
}

/// A known key, and the text that follows its colon without a space.
fn split<'t>(text: &'t str, places: &[Place]) -> Option<(&'t str, &'t str)> {
    let (key, value) = text.split_once(':')?;
    // Keys of `match` are common words, such as `hosts`.
    let mut mappings = places.iter().filter(|(mapping, _)| mapping.name != "match");
    let known = mappings.any(|(mapping, _)| mapping.key(key).is_some());
    let glued = value.chars().next().is_some_and(|next| !next.is_ascii_whitespace());
    (known && glued).then_some((key, value))
}
