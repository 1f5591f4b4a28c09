//! Requests that are exempt from all limits.

use super::{condition, matcher};
use diana_policy::Except;
use diana_policy::port::Request;

/// Returns true if `request` is exempt. `path` is the only reading of its path, and empty if
/// readers differ. Reads only the values that the list names from the host.
#[must_use]
pub fn covers(except: &Except, request: &dyn Request, path: &[u8]) -> bool {
    except.paths.iter().any(|prefix| prefix.covers(path))
        || matcher::is_host(&except.hosts, request, true)
        || except.headers.iter().any(|condition| condition::must_hold(condition, request))
        || (!except.addresses.is_empty() && covers_address(except, request))
}

fn covers_address(except: &Except, request: &dyn Request) -> bool {
    request
        .client()
        .is_some_and(|address| except.addresses.iter().any(|net| net.contains(&address)))
}
