//! Rules whose keys clients choose, without a rule beside them that counts addresses.

use super::about::{About, Advised, named};
use diana_policy::{Limit, Prefix, Rule};

/// Finds such rules.
pub fn find(about: &About<'_>) -> Vec<Advised> {
    let limits = &about.policy.limits;
    let guards: Vec<&Limit> = limits.iter().filter(|limit| is_guard(about, limit)).collect();
    let message = "clients choose the key of these rules, so one client can use any number of keys; add a rule with a `client_address` \
                   actor for the same requests";
    named(message, limits.iter().flat_map(|limit| unguarded(about, limit, &guards)))
}

/// Returns true if a limit has a rule that depends on client addresses only, and that no other rule
/// replaces.
fn is_guard(about: &About<'_>, limit: &Limit) -> bool {
    let by_address = |rule: &Rule| about.actors_of(rule).all(|known| known.is_address);
    let is_one =
        |rule: &Rule| !rule.actor.is_empty() && !about.is_replaced(rule) && rule.over.is_none();
    limit.rules.iter().any(|rule| is_one(rule) && by_address(rule))
}

/// Rules with chosen keys whose requests are not covered by any guard.
fn unguarded<'l>(
    about: &About<'_>,
    limit: &'l Limit,
    guards: &[&Limit],
) -> impl Iterator<Item = &'l Rule> {
    let is_below = |guard: &Limit, url: &Prefix| guard.urls.iter().any(|it| it.covers(url.path()));
    // A condition on values that clients choose may exclude requests from the guard.
    let is_open = |guard: &Limit| {
        let has_values = guard.matcher.unless.iter().any(|block| !block.values.is_empty());
        guard.matcher == limit.matcher || guard.matcher.any.is_empty() && !has_values
    };
    let covers =
        |guard: &&Limit| is_open(guard) && limit.urls.iter().all(|url| is_below(guard, url));
    let guarded = is_guard(about, limit) || guards.iter().any(covers);
    limit.rules.iter().filter(move |rule| !guarded && about.is_caller_chosen(rule))
}
