//! Conditions on numbers of metadata that Envoy has rounded.

use diana_policy::number::{FIRST_ROUNDED, digits};
use diana_policy::{Condition, ConditionField, Limit, Test};

/// Returns true if an entry has such a condition.
pub fn compares_large(limit: &Limit) -> bool {
    let blocks = limit.matcher.any.iter().chain(&limit.matcher.unless);
    blocks.flat_map(|block| &block.values).any(is_large)
}

fn is_large(condition: &Condition) -> bool {
    let is = |text: &String| {
        let size = text.strip_prefix('-').unwrap_or(text);
        digits(size.as_bytes()).is_some_and(|number| number >= FIRST_ROUNDED)
    };
    let is_property = matches!(condition.field, ConditionField::Property(_));
    is_property
        && match &condition.test {
            Test::Exact(text) | Test::Not(text) => is(text),
            Test::In(texts) => texts.iter().any(is),
            _ => false,
        }
}
