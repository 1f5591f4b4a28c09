//! Requests that are not judged.

use ipnet::IpNet;

use crate::port::Request;
use crate::route::header::Condition;
use crate::route::path::Prefix;

/// A list of exemptions; any one of them exempts a request.
#[derive(Debug, Clone, Default)]
pub struct Except {
    /// Client addresses, IPv4-mapped IPv6 written as IPv4.
    pub addresses: Vec<IpNet>,
    /// Paths.
    pub paths: Vec<Prefix>,
    /// Header conditions.
    pub headers: Vec<Condition>,
}

impl Except {
    /// Whether nothing is exempt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.paths.is_empty() && self.headers.is_empty()
    }

    /// Whether headers are looked at.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Whether `request` is exempt; `path` is its path if that is spelled plainly, and empty otherwise.
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
