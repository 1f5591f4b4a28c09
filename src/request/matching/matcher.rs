//! Conditions of an entry on a request, apart from its path; and exempt requests.

use super::condition;
use diana_policy::port::{Pseudo, Request};
use diana_policy::{ConditionBlock, Except, HostPattern, Match};

/// Returns true if an entry applies to this request. Reads only the values in its conditions from
/// the host.
#[must_use]
pub fn holds(entry: &Match, request: &dyn Request) -> bool {
    let is_meant = entry.any.is_empty() || entry.any.iter().any(|block| may_hold(block, request));
    is_meant && !entry.unless.iter().any(|block| must_hold(block, request))
}

/// Returns true if an entry applies to this request in all readings.
#[must_use]
pub fn surely_holds(entry: &Match, request: &dyn Request) -> bool {
    let is_meant = entry.any.is_empty() || entry.any.iter().any(|block| must_hold(block, request));
    is_meant && !entry.unless.iter().any(|block| may_hold(block, request))
}

/// Returns true if a request meets every condition in at least one reading.
fn may_hold(block: &ConditionBlock, request: &dyn Request) -> bool {
    // Some upstreams ignore the case of methods.
    holds_method(block, request, &|method, known| method.eq_ignore_ascii_case(known))
        && holds_host(block, request, false)
        && holds_address(block, request)
        && block.values.iter().all(|condition| condition::may_hold(condition, request))
        && holds_route(block, request)
}

/// Returns true if a request meets every condition in all readings.
fn must_hold(block: &ConditionBlock, request: &dyn Request) -> bool {
    holds_method(block, request, &|method, known| method == known)
        && holds_host(block, request, true)
        && holds_address(block, request)
        && block.values.iter().all(|condition| condition::must_hold(condition, request))
        && holds_route(block, request)
}

fn holds_method(
    block: &ConditionBlock,
    request: &dyn Request,
    is: &dyn Fn(&[u8], &[u8]) -> bool,
) -> bool {
    if block.methods.is_empty() {
        return true;
    }
    let method = request.pseudo(Pseudo::Method);
    method.is_some_and(|method| block.methods.iter().any(|known| is(&method, known.as_bytes())))
}

/// With `plain` only a plain authority matches.
fn holds_host(block: &ConditionBlock, request: &dyn Request, plain: bool) -> bool {
    block.hosts.is_empty()
        || request.pseudo(Pseudo::Authority).is_some_and(|authority| {
            block.hosts.iter().any(|host| host.matches(&authority))
                && (!plain || HostPattern::is_plain(&authority))
        })
}

fn holds_address(block: &ConditionBlock, request: &dyn Request) -> bool {
    let is_one = |address| block.addresses.iter().any(|net| net.contains(&address));
    block.addresses.is_empty() || request.client().is_some_and(is_one)
}

/// The host knows exactly one route, so there are no readings. Last of all conditions, since it is a
/// call of the host for this purpose alone.
fn holds_route(block: &ConditionBlock, request: &dyn Request) -> bool {
    block.routes.is_empty() || request.route().is_some_and(|name| block.routes.contain(&name))
}

/// Returns true if `request` is exempt. `path` is the only reading of its path, and empty if
/// readers differ. Reads only the values that the list names from the host.
#[must_use]
#[inline(never)]
pub fn exempts(except: &Except, request: &dyn Request, path: &[u8]) -> bool {
    except.paths.iter().any(|prefix| prefix.covers(path))
        || except.any.iter().any(|block| must_hold(block, request))
}
