//! Conditions on numbers of metadata that Envoy has rounded.

use super::{Advice, line};
use diana_policy::number::{FIRST_ROUNDED, digits};
use diana_policy::{Condition, ConditionField, Limit, Test};

/// Names the rules of entries with such conditions.
pub fn advice(limits: &[Limit]) -> Option<Advice> {
    let rules = limits.iter().filter(|limit| compares_large(limit)).flat_map(|limit| &limit.rules);
    let message = "conditions of these rules compare a claim or metadata with a number from 2⁵³ on; Envoy stores numbers as \
                   64-bit floats, so only a text equals it: let the issuer write the value as a text";
    line("large-number", message, rules).map(|it| Advice { is_mistake: true, ..it })
}

fn compares_large(limit: &Limit) -> bool {
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
