//! Entries for `GET` that leave out `HEAD`, for which most upstreams do the same work.

use diana_config::Advice;
use diana_policy::{ConditionBlock, Limit, Policy};

/// Names the rules of entries of which no block with `GET` has `HEAD`, too.
pub fn advice(policy: &Policy) -> Option<Advice> {
    let limits = policy.limits.iter().filter(|limit| leaves_out_head(limit));
    let rules: Vec<String> =
        limits.flat_map(|limit| &limit.rules).map(|rule| rule.name.clone()).collect();
    let message = "`match` of these rules has `GET` without `HEAD`, for which most upstreams do the same work; write `methods: \
                   [GET, HEAD]`";
    (!rules.is_empty()).then(|| Advice { rules, ..Advice::new("get-without-head", message) })
}

fn leaves_out_head(limit: &Limit) -> bool {
    let has = |block: &ConditionBlock, name: &str| block.methods.iter().any(|it| it == name);
    let any = &limit.matcher.any;
    any.iter().any(|block| has(block, "GET")) && !any.iter().any(|block| has(block, "HEAD"))
}
