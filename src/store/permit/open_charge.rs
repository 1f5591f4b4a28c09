//! A charge that is settled when the stream of its request ends. As a worker may have very many
//! open streams, it is small: 80 bytes in the module, including the allocator's overhead.

use std::rc::Rc;

use super::CancelQueue;
use crate::Account;
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::Micros;
use diana_request::settling::{GrpcOutcome, HeaderUsage, KnownResponse};

/// A charge that is settled when the stream of its request ends.
// With an alignment of eight bytes, an entry of the list would need eight bytes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub struct OpenCharge {
    /// The caller.
    pub key: Key,
    /// The receipt of the reservation.
    pub receipt: u64,
    /// When it was charged, on the monotonic clock.
    pub since: Micros,
    /// Reserved permits.
    pub reserved: u64,
    /// Used permits, as far as they are known.
    pub used: u64,
    /// The rule's number in its limiter.
    pub rule: u32,
    /// The plan of the rule under which it was charged.
    pub plan: u64,
    /// The result of reading headers and trailers of the response.
    pub header_usage: HeaderUsage,
    /// The meaning of the response's gRPC status.
    pub grpc: GrpcOutcome,
    /// Whether the caller is identified, so that the end of the request is attributed to it.
    pub is_identified: bool,
    /// Whether the gateway's share of a limit was charged instead of Redis.
    pub is_degraded: bool,
}

impl OpenCharge {
    /// The same with this usage.
    #[must_use]
    #[inline]
    pub fn with_used(self, used: u64) -> OpenCharge {
        OpenCharge { used, ..self }
    }

    /// The known parts of the response.
    #[must_use]
    pub fn response(&self) -> KnownResponse {
        let OpenCharge { header_usage, used, grpc, .. } = *self;
        KnownResponse { usage: header_usage, used, grpc }
    }

    /// The same with these parts of the response.
    #[must_use]
    pub fn with_response(self, response: KnownResponse) -> OpenCharge {
        let KnownResponse { usage: header_usage, used, grpc } = response;
        OpenCharge { header_usage, grpc, ..self.with_used(used) }
    }

    /// The caller, and its plan at the charge.
    #[must_use]
    pub fn account(&self) -> Account {
        Account { key: self.key, plan: self.plan }
    }

    /// The settlement.
    #[must_use]
    pub fn settlement(&self) -> Settlement {
        let OpenCharge { receipt, since, reserved, used, .. } = *self;
        Settlement { receipt, since, reserved, used }
    }
}

/// An open charge, linked to the next one of its request.
pub(super) struct LinkedCharge {
    /// `None` once it is closed.
    pub charge: Option<OpenCharge>,
    pub freed: Rc<CancelQueue>,
    pub next: Option<Box<LinkedCharge>>,
}

impl LinkedCharge {
    pub fn new(
        charge: OpenCharge,
        freed: &Rc<CancelQueue>,
        next: Option<Box<LinkedCharge>>,
    ) -> Box<LinkedCharge> {
        freed.open();
        Box::new(LinkedCharge { charge: Some(charge), freed: freed.clone(), next })
    }

    /// Closes it, so that a drop does not cancel it.
    pub fn close(&mut self) -> Option<OpenCharge> {
        let charge = self.charge.take();
        charge.iter().for_each(|_| self.freed.close());
        charge
    }
}

impl Drop for LinkedCharge {
    fn drop(&mut self) {
        if let Some(charge) = self.close() {
            self.freed.add(charge.with_used(0));
        }
        // Iterative, since there may be very many.
        let mut next = self.next.take();
        while let Some(mut open) = next {
            next = open.next.take();
        }
    }
}
