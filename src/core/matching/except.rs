//! Requests that are not judged.

use crate::policy::Except;
use crate::port::Request;

impl Except {
    /// Whether `request` is exempt; `path` is the only reading of its path, and empty where readers differ.
    /// Asks the host only for what the list needs.
    #[must_use]
    pub fn covers(&self, request: &dyn Request, path: &[u8]) -> bool {
        self.paths.iter().any(|prefix| prefix.covers(path))
            || self.headers.iter().any(|condition| condition.must_hold(request))
            || (!self.addresses.is_empty() && self.covers_address(request))
    }

    fn covers_address(&self, request: &dyn Request) -> bool {
        request
            .client()
            .is_some_and(|address| self.addresses.iter().any(|net| net.contains(&address)))
    }
}
