//! Conditions of `unless` on percent-encoded text, which never match, since values are compared
//! decoded.

use diana_config::Advice;
use diana_policy::spelling::decoded;
use diana_policy::{Condition, ConditionField, Limit, Policy, Test};

/// Names the rules of entries with such conditions.
pub fn advice(policy: &Policy) -> Option<Advice> {
    let limits = policy.limits.iter().filter(|limit| has_encoded(limit));
    let rules: Vec<String> =
        limits.flat_map(|limit| &limit.rules).map(|rule| rule.name.clone()).collect();
    let message = "`unless` of these rules contains percent-encoded text, but query parameters and cookies are decoded before \
                   they are compared; write `@` instead of `%40`";
    (!rules.is_empty()).then(|| Advice { rules, ..Advice::new("encoded-text", message) })
}

fn has_encoded(limit: &Limit) -> bool {
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
