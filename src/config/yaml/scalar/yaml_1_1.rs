//! Plain scalars that YAML 1.1 reads differently from YAML 1.2.

use diana_policy::tree::Tree;

/// Words for true and false. Only these three spellings of each are words.
const WORDS: [(&str, bool); 6] =
    [("y", true), ("yes", true), ("on", true), ("n", false), ("no", false), ("off", false)];

/// The value of a plain scalar, if it differs from that by YAML 1.2.
pub fn read(text: &str) -> Option<Tree> {
    word(text).or_else(|| number(text))
}

/// The boolean that a word denotes, except `true` and `false`.
pub fn word(text: &str) -> Option<Tree> {
    let lower = text.to_ascii_lowercase();
    let (_, value) = WORDS.iter().find(|(word, _)| *word == lower)?;
    let is_spelled = text == lower || text == lower.to_ascii_uppercase() || is_title(text);
    is_spelled.then_some(Tree::Bool(*value))
}

/// Returns true if the first letter of a word is upper case, and no other.
fn is_title(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && !word.chars().skip(1).any(|letter| letter.is_ascii_uppercase())
}

/// The number in a text with a leading zero, or with `_` between digits.
fn number(text: &str) -> Option<Tree> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let joined = digits.replace('_', "");
    let has_underscore = joined.len() < digits.len();
    if !joined.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let is_padded = joined.len() > 1 && joined.starts_with('0');
    let is_whole = joined.bytes().all(|byte| byte.is_ascii_digit());
    if is_padded && is_whole {
        // Digits that are not octal make it a decimal number.
        let value = i128::from_str_radix(&joined, 8).or_else(|_| joined.parse()).ok()?;
        return Some(Tree::Int(if negative { -value } else { value }));
    }
    has_underscore.then(|| super::number(&text.replace('_', ""))).flatten()
}
