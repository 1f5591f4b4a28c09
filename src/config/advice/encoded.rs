//! Conditions of `unless` on percent-encoded text, which never match, since values are compared
//! decoded.

use diana_policy::spelling::decoded;
use diana_policy::{Condition, ConditionField, Limit, Test};

/// Returns true if an entry has such a condition.
pub fn has_encoded(limit: &Limit) -> bool {
    limit.matcher.unless.iter().flat_map(|block| &block.values).any(is_encoded)
}

fn is_encoded(condition: &Condition) -> bool {
    let is = |text: &String| !decoded(text.as_bytes()).eq(text.bytes());
    let has_escapes = match &condition.test {
        Test::Exact(text)
        | Test::Prefix(text)
        | Test::Suffix(text)
        | Test::Contains(text)
        | Test::Not(text) => is(text),
        Test::In(texts) => texts.iter().any(is),
        Test::Present(_) | Test::Between(..) => false,
    };
    has_escapes && matches!(condition.field, ConditionField::Query(_) | ConditionField::Cookie(_))
}
