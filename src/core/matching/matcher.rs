//! What must hold of a request beyond its path.

use crate::policy::{Block, Match};
use crate::port::{Pseudo, Request};

impl Match {
    /// Whether an entry is for this request. Asks the host only for what the conditions need.
    #[must_use]
    pub fn holds(&self, request: &dyn Request) -> bool {
        let is_meant = self.any.is_empty() || self.any.iter().any(|block| block.may_hold(request));
        is_meant && !self.unless.iter().any(|block| block.must_hold(request))
    }
}

impl Block {
    /// Whether a request meets every condition, in any way that it can be read.
    #[must_use]
    pub fn may_hold(&self, request: &dyn Request) -> bool {
        // Some upstreams do not care about the case of methods.
        self.holds_method(request, &|method, known| method.eq_ignore_ascii_case(known))
            && self.holds_host(request, false)
            && self.holds_address(request)
            && self.values.iter().all(|condition| condition.may_hold(request))
    }

    /// Whether it does in all ways that it can be read.
    #[must_use]
    pub fn must_hold(&self, request: &dyn Request) -> bool {
        self.holds_method(request, &|method, known| method == known)
            && self.holds_host(request, true)
            && self.holds_address(request)
            && self.values.iter().all(|condition| condition.must_hold(request))
    }

    fn holds_method(&self, request: &dyn Request, is: &dyn Fn(&[u8], &[u8]) -> bool) -> bool {
        if self.methods.is_empty() {
            return true;
        }
        let method = request.pseudo(Pseudo::Method);
        method.is_some_and(|method| self.methods.iter().any(|known| is(&method, known.as_bytes())))
    }

    /// By a `plain` authority only: what a user, an escape or a second host makes of it is anybody's guess.
    fn holds_host(&self, request: &dyn Request, plain: bool) -> bool {
        if self.hosts.is_empty() {
            return true;
        }
        let is_odd = |authority: &[u8]| authority.iter().any(|byte| b"%,@".contains(byte));
        request.pseudo(Pseudo::Authority).is_some_and(|authority| {
            !(plain && is_odd(&authority)) && self.hosts.iter().any(|host| host.matches(&authority))
        })
    }

    fn holds_address(&self, request: &dyn Request) -> bool {
        let is_one = |address| self.addresses.iter().any(|net| net.contains(&address));
        self.addresses.is_empty() || request.client().is_some_and(is_one)
    }
}
