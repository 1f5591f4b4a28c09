//! A charge that is settled when the stream of its request ends. Very many streams may be open, so that it takes no more
//! memory than it must: in the module 64 bytes, with those by which the allocator knows it.

use std::rc::Rc;

use super::Freed;
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::Micros;
use diana_request::settling::Heard;

/// A charge that is settled when the stream of its request ends.
// Aligned to eight bytes it would take eight more with its place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub struct Unsettled {
    /// The caller.
    pub key: Key,
    /// Under which the permits were charged that were reserved.
    pub receipt: u64,
    /// When they were, on the monotonic clock.
    pub since: Micros,
    /// How many they were, at most 10⁹.
    pub reserved: u32,
    /// How many the request used, as far as that is known.
    pub used: u32,
    /// The rule's number in its limiter.
    pub rule: u32,
    /// The plan of the rule by which they were charged.
    pub plan: u32,
    /// What is known of the response so far.
    pub heard: Heard,
    /// Whether the caller has a name, so that it is its own doing how the request ends.
    pub is_own: bool,
    /// Whether the gateway's part of a limit was charged in place of the fleet's.
    pub is_alone: bool,
}

impl Unsettled {
    /// The same of a request that used so many permits.
    #[must_use]
    pub fn with_used(self, used: u64) -> Unsettled {
        Unsettled { used: permits(used), ..self }
    }

    /// What is to be settled.
    #[must_use]
    pub fn settlement(&self) -> Settlement {
        let Unsettled { receipt, since, .. } = *self;
        Settlement { receipt, since, reserved: self.reserved.into(), used: self.used.into() }
    }
}

/// A number of permits, of which there are never more than fit.
#[must_use]
pub fn permits(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// One that is open, and the next one of its request.
pub(super) struct Open {
    /// Nothing as soon as it is closed.
    pub charge: Option<Unsettled>,
    pub freed: Rc<Freed>,
    pub next: Option<Box<Open>>,
}

impl Open {
    pub fn new(charge: Unsettled, freed: &Rc<Freed>, next: Option<Box<Open>>) -> Box<Open> {
        freed.open();
        Box::new(Open { charge: Some(charge), freed: freed.clone(), next })
    }

    /// Nothing of it comes back by itself any more.
    pub fn close(&mut self) -> Option<Unsettled> {
        let charge = self.charge.take();
        charge.iter().for_each(|_| self.freed.close());
        charge
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(charge) = self.close() {
            self.freed.add([charge.with_used(0)]);
        }
        // One after the other, since there may be very many.
        let mut next = self.next.take();
        while let Some(mut open) = next {
            next = open.next.take();
        }
    }
}
