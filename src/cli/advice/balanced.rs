//! Refusals with a server error by one of several gateways. A load balancer in front takes them for those of a dead server.

use diana_config::Advice;
use diana_policy::{Policy, Rule};

/// Names the rules with such refusals.
pub fn advice(policy: &Policy, has_replicas: bool) -> Option<Advice> {
    let rules = policy.limits.iter().flat_map(|limit| &limit.rules).filter(|rule| is_error(rule));
    let rules: Vec<String> = rules.map(|rule| rule.name.clone()).collect();
    let message = "refusals of these rules have a status of server errors, by default 503, for which a load balancer takes a gateway \
                   out of use, and tries the request at the next one; set `response: {status: 429}`";
    (has_replicas && !rules.is_empty())
        .then(|| Advice { rules, ..Advice::new("server-error", message) })
}

/// Returns true if the rule refuses requests, with such a status.
fn is_error(rule: &Rule) -> bool {
    rule.response.status >= 500 && !rule.shadow && rule.over.is_none()
}
