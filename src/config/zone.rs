//! `time_zone`: how far local time is ahead of UTC.

use super::node::Node;

const ALLOWED: &str = "an offset such as \"+08:00\", -14:00 … +14:00, or Z, or UTC";
const MAX_MINUTES: i64 = 14 * 60;

/// Seconds that local time is ahead of UTC.
pub fn read(node: &Node<'_>) -> i64 {
    let Some(text) = node.text(ALLOWED) else { return 0 };
    match minutes(text) {
        Some(minutes) if minutes.abs() <= MAX_MINUTES => return minutes * 60,
        None if text.starts_with(|first: char| first.is_ascii_alphabetic()) => node
            .reject(&format!("{ALLOWED}; names of time zones are not available in this release")),
        _ => node.reject(ALLOWED),
    }
    0
}

fn minutes(text: &str) -> Option<i64> {
    if text == "Z" || text == "UTC" {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':')?;
    let two = |part: &str| {
        let is_two = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_two { part.parse::<i64>().ok() } else { None }
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (minutes < 60).then_some(sign * (hours * 60 + minutes))
}
