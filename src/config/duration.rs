//! Durations: whole numbers of milliseconds, seconds, minutes or hours.

use super::node::Node;
use diana_core::time::{DURATIONS, Micros, spell};
use diana_core::tree::Tree;

/// A duration in ticks, in a range. Nothing at all is `0` in any unit.
pub fn read(node: &Node<'_>, min: Micros, max: Micros) -> Option<Micros> {
    let ticks = match node.tree() {
        Tree::Int(0) => Some(0),
        Tree::Text(text) if text == "0" => Some(0),
        Tree::Text(text) => amount(text, &DURATIONS),
        _ => None,
    };
    let fits = ticks.filter(|ticks| (min..=max).contains(ticks));
    if fits.is_none() {
        let (min, max) = (spell(min), spell(max));
        node.reject(&format!(
            "a duration, {min} … {max}: a whole number of ms, s, m or h, such as `1500ms`"
        ));
    }
    fits
}

/// A whole number of some unit, such as `90s`, whose name is none's end that comes before.
pub fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = |(name, length): &(&str, u64)| Some((text.strip_suffix(name)?, *length));
    let (number, length) = units.iter().find_map(split)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(length)
}
