//! Requests that come once more after the rules have changed: they go on by those that they came by, whose engine keeps
//! what was reserved for them.

use std::rc::Rc;

use super::Worker;
use crate::instance::Instance;
use diana_core::port::Request;

impl Worker {
    /// An instance keeps what was reserved for a request that is about to come once more, to whichever of its root gets
    /// requests by now.
    pub(crate) fn follow(&self, keeper: &Instance) {
        let is_other =
            |it: &&Rc<Instance>| it.root() == keeper.root() && it.number != keeper.number;
        self.instances.borrow().iter().filter(is_other).for_each(|it| it.another_follows.set(true));
    }

    /// The instance that keeps what was reserved for a request which has come to another one of its root.
    pub(crate) fn keeper(&self, of: &Instance, request: &dyn Request) -> Option<Rc<Instance>> {
        let is_it = |it: &&Rc<Instance>| it.root() == of.root() && it.follows(request);
        self.instances.borrow().iter().find(is_it).cloned()
    }
}
