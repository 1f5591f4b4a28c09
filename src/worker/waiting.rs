//! Requests that wait for a reply of Redis.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::host::Host;
use super::operator::Explanation;
use diana_limiter::{Refusal, Report, Resumed};
use diana_store::permit::Permit;

/// A response header: its name and its value.
pub type Field = (Cow<'static, str>, String);

/// State that a stream and its instance share, for a request that waits or has work left at its
/// response.
#[derive(Default)]
pub(crate) struct Late {
    /// The ticket of the reply.
    ticket: Cell<Option<u64>>,
    /// Headers to add to the upstream's response.
    fields: Cell<Vec<Field>>,
    /// The explanation for an operator, if wanted.
    explanation: RefCell<Option<Box<Explanation>>>,
    /// The charges to settle when the stream ends.
    permit: Cell<Permit>,
}

impl Late {
    /// The request is admitted, at once or after a wait. The permit is settled at the end of the
    /// stream.
    pub(crate) fn admit(&self, permit: Permit, report: Option<&Report>, host: &dyn Host) {
        self.permit.set(permit);
        report.into_iter().for_each(|report| self.tell(report, host));
    }

    /// Reports the decision about an admitted request.
    pub(crate) fn tell(&self, report: &Report, host: &dyn Host) {
        if let Some(record) = &report.by {
            host.tell(record.state().as_bytes());
        }
        if let Some((header, rules)) = &report.mark {
            host.mark(header, rules);
        }
        let fields = report.headers().into_iter();
        self.fields.set(fields.map(|(name, value)| (name.into(), value)).collect());
        if let Some(explanation) = &mut *self.explanation.borrow_mut() {
            explanation.tell(report.explained.clone());
        }
    }

    /// Requests an explanation.
    pub(crate) fn explain(&self, explanation: Explanation) {
        *self.explanation.borrow_mut() = Some(Box::new(explanation));
    }

    /// Returns true if an operator wants an explanation.
    pub(crate) fn is_explained(&self) -> bool {
        self.explanation.borrow().is_some()
    }

    /// Adds the explanation to a refusal.
    pub(crate) fn complete(&self, refusal: &mut Refusal) {
        let explanation = self.explanation.take();
        explanation.into_iter().for_each(|explanation| explanation.add_to(refusal));
    }

    /// The headers to add to the response, which has arrived.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let mut fields = self.fields.take();
        let explanation = self.explanation.take().map(|explanation| explanation.field());
        fields.extend(explanation.map(|(name, value)| (Cow::Owned(name.as_ref().into()), value)));
        fields
    }

    /// The charges to settle.
    pub(crate) fn permit(&self) -> Permit {
        self.permit.take()
    }
}

/// The waiting requests of one instance.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) streams: RefCell<BTreeMap<u64, (u32, Rc<Late>)>>,
    /// Requests with a reply.
    pub(crate) ready: RefCell<VecDeque<Resumed>>,
}

impl Waiting {
    /// Adds a stream that waits.
    pub(crate) fn join(&self, ticket: u64, stream: u32, late: Rc<Late>) {
        late.ticket.set(Some(ticket));
        self.streams.borrow_mut().insert(ticket, (stream, late));
    }

    /// Removes a stream that has ended. Returns its ticket if it still waited.
    pub(crate) fn leave(&self, late: &Late) -> Option<u64> {
        let ticket = late.ticket.get()?;
        self.streams.borrow_mut().remove(&ticket).map(|_| ticket)
    }

    /// The number of replies that have not been processed.
    pub(crate) fn answered(&self) -> usize {
        self.ready.borrow().len()
    }
}
