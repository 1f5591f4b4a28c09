//! Plain scalars that YAML 1.1 reads differently from YAML 1.2.

use super::Dialect;
use diana_policy::tree::Tree;

/// Words for true and false. Only these three spellings of each are words.
const WORDS: [(&str, bool); 6] =
    [("y", true), ("yes", true), ("on", true), ("n", false), ("no", false), ("off", false)];

/// The value of a plain scalar, if it differs from that by YAML 1.2.
pub fn read(text: &str, dialect: Dialect) -> Option<Tree> {
    if dialect == Dialect::Diana {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    if let Some((_, value)) = WORDS.iter().find(|(word, _)| *word == lower) {
        let is_spelled = text == lower || text == lower.to_ascii_uppercase() || is_title(text);
        return is_spelled.then_some(Tree::Bool(*value));
    }
    number(text, dialect)
}

/// Returns true if the first letter of a word is upper case, and no other.
fn is_title(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && !word.chars().skip(1).any(|letter| letter.is_ascii_uppercase())
}

/// The number in a text with a leading zero, or with `_` between digits.
fn number(text: &str, dialect: Dialect) -> Option<Tree> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let joined = digits.replace('_', "");
    let has_underscore = joined.len() < digits.len();
    if !joined.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if has_underscore && dialect == Dialect::Envoy {
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
