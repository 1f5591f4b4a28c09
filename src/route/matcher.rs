//! What must hold of a request beyond its path.

use crate::port::{Pseudo, Request};
use crate::route::header::Condition;
use crate::route::host::Host;

/// Conditions of an entry beyond its path; all must hold, an empty list always does.
#[derive(Debug, Default)]
pub struct Match {
    /// Methods, upper case; one of them.
    pub methods: Vec<String>,
    /// Hosts; one of them.
    pub hosts: Vec<Host>,
    /// Header conditions; all of them.
    pub headers: Vec<Condition>,
}

impl Match {
    /// Whether nothing needs to hold.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.hosts.is_empty() && self.headers.is_empty()
    }

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
