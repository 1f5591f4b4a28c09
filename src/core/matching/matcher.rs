//! What must hold of a request beyond its path.

use crate::policy::Match;
use crate::port::{Pseudo, Request};

impl Match {
    /// Whether a request meets every condition, in any way that it can be read. Asks the host only for
    /// what they need.
    #[must_use]
    pub fn holds(&self, request: &dyn Request) -> bool {
        (self.methods.is_empty() || self.holds_method(request))
            && (self.hosts.is_empty() || self.holds_host(request))
            && self.headers.iter().all(|condition| condition.may_hold(request))
    }

    fn holds_method(&self, request: &dyn Request) -> bool {
        match request.pseudo(Pseudo::Method) {
            // Some upstreams do not care about their case.
            Some(method) => {
                self.methods.iter().any(|known| method.eq_ignore_ascii_case(known.as_bytes()))
            }
            None => false,
        }
    }

    fn holds_host(&self, request: &dyn Request) -> bool {
        match request.pseudo(Pseudo::Authority) {
            Some(authority) => self.hosts.iter().any(|host| host.matches(&authority)),
            None => false,
        }
    }
}
