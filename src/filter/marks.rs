//! Request headers that mark hot callers: taken off whatever comes in, so that nobody can forge them,
//! and set on what goes on. Envoy chooses the route anew after either.

use super::abi;
use super::gate::Gate;
use super::host::HostRequest;
use crate::engine::Engine;
use crate::verdict::Verdict;

/// Marks the request that the host is calling about, if it may go on.
pub(super) fn set(engine: &Engine, verdict: &Verdict) {
    if !matches!(verdict, Verdict::Refuse(_)) {
        for (header, rule) in engine.marks() {
            abi::set_header(abi::REQUEST_HEADERS, header, rule);
        }
    }
}

impl Gate {
    /// The request that the host is calling about, without marks.
    pub(super) fn unmarked_request(&self) -> HostRequest {
        let mut request = self.request();
        for name in self.marks() {
            if request.has(name) {
                abi::remove_header(abi::REQUEST_HEADERS, name);
                // What was read is out of date.
                request = self.request();
            }
        }
        request
    }
}
