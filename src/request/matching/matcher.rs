//! What must hold of a request beyond its path.

use super::condition;
use diana_policy::port::{Pseudo, Request};
use diana_policy::{Block, Match};

/// Whether an entry is for this request. Asks the host only for values in the conditions.
#[must_use]
pub fn holds(entry: &Match, request: &dyn Request) -> bool {
    let is_meant = entry.any.is_empty() || entry.any.iter().any(|block| may_hold(block, request));
    is_meant && !entry.unless.iter().any(|block| must_hold(block, request))
}

/// Whether a request meets every condition, in any way that it can be read.
fn may_hold(block: &Block, request: &dyn Request) -> bool {
    // Some upstreams do not care about the case of methods.
    holds_method(block, request, &|method, known| method.eq_ignore_ascii_case(known))
        && holds_host(block, request, false)
        && holds_address(block, request)
        && block.values.iter().all(|condition| condition::may_hold(condition, request))
}

/// Whether it does in all ways that it can be read.
fn must_hold(block: &Block, request: &dyn Request) -> bool {
    holds_method(block, request, &|method, known| method == known)
        && holds_host(block, request, true)
        && holds_address(block, request)
        && block.values.iter().all(|condition| condition::must_hold(condition, request))
}

fn holds_method(block: &Block, request: &dyn Request, is: &dyn Fn(&[u8], &[u8]) -> bool) -> bool {
    if block.methods.is_empty() {
        return true;
    }
    let method = request.pseudo(Pseudo::Method);
    method.is_some_and(|method| block.methods.iter().any(|known| is(&method, known.as_bytes())))
}

/// By a `plain` authority only: upstreams disagree about a user, an escape or a second host in it.
fn holds_host(block: &Block, request: &dyn Request, plain: bool) -> bool {
    if block.hosts.is_empty() {
        return true;
    }
    let is_odd = |authority: &[u8]| authority.iter().any(|byte| b"%,@".contains(byte));
    request.pseudo(Pseudo::Authority).is_some_and(|authority| {
        !(plain && is_odd(&authority)) && block.hosts.iter().any(|host| host.matches(&authority))
    })
}

fn holds_address(block: &Block, request: &dyn Request) -> bool {
    let is_one = |address| block.addresses.iter().any(|net| net.contains(&address));
    block.addresses.is_empty() || request.client().is_some_and(is_one)
}
