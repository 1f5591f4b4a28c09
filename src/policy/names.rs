//! Names of rules in a line of a log.

/// Maximum number of names in a line.
const MOST: usize = 20;

/// The names, with commas between them: the first 20, and the number of further ones.
#[must_use]
pub fn listed(names: &[String]) -> String {
    let first = names.get(..MOST).unwrap_or(names).join(", ");
    match names.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
