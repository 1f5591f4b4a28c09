//! Requests that wait for Redis, or for permits that others hold.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::host::Host;
use super::operator::Explanation;
use diana_limiter::engine::Resumed;
use diana_limiter::report::{Refusal, Report};
use diana_store::permit::Permit;

/// A header of a response: its name and its value.
pub type Field = (Cow<'static, str>, String);

/// What a stream and its instance know together of a request that waits, or of which something is left to
/// do when the response comes.
#[derive(Default)]
pub(crate) struct Late {
    /// Under which the answer comes.
    ticket: Cell<Option<u64>>,
    /// Headers to add to the upstream's response.
    fields: Cell<Vec<Field>>,
    /// What an operator is told who asks about the request.
    explanation: RefCell<Option<Box<Explanation>>>,
    /// What is to be settled when the stream ends.
    permit: Cell<Permit>,
}

impl Late {
    /// The request goes on, at once or later, and this is told of it. What is to be settled by a permit is settled at
    /// its end.
    pub(crate) fn admit(&self, permit: Permit, report: Option<&Report>, host: &dyn Host) {
        self.permit.set(permit);
        report.into_iter().for_each(|report| self.tell(report, host));
    }

    /// This is told of a request that goes on.
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

    /// An operator asks about the request.
    pub(crate) fn explain(&self, explanation: Explanation) {
        *self.explanation.borrow_mut() = Some(Box::new(explanation));
    }

    /// Whether an operator asks about the request.
    pub(crate) fn is_explained(&self) -> bool {
        self.explanation.borrow().is_some()
    }

    /// Adds what an operator is told to a refusal.
    pub(crate) fn complete(&self, refusal: &mut Refusal) {
        let explanation = self.explanation.take();
        explanation.into_iter().for_each(|explanation| explanation.add_to(refusal));
    }

    /// The headers to be added to the response, which has come.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let mut fields = self.fields.take();
        let explanation = self.explanation.take().map(|explanation| explanation.field());
        fields.extend(explanation.map(|(name, value)| (Cow::Owned(name.as_ref().into()), value)));
        fields
    }

    /// What is to be settled of the request.
    pub(crate) fn permit(&self) -> Permit {
        self.permit.take()
    }
}

/// The requests of one instance that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) streams: RefCell<BTreeMap<u64, (u32, Rc<Late>)>>,
    /// Those whose answers have come.
    pub(crate) ready: RefCell<VecDeque<Resumed>>,
}

impl Waiting {
    /// Lets a stream wait.
    pub(crate) fn join(&self, ticket: u64, stream: u32, late: Rc<Late>) {
        late.ticket.set(Some(ticket));
        self.streams.borrow_mut().insert(ticket, (stream, late));
    }

    /// Forgets a stream that ended. Its ticket, if it still waited.
    pub(crate) fn leave(&self, late: &Late) -> Option<u64> {
        let ticket = late.ticket.get()?;
        self.streams.borrow_mut().remove(&ticket).map(|_| ticket)
    }

    /// How many answers have come with which nobody went on yet.
    pub(crate) fn answered(&self) -> usize {
        self.ready.borrow().len()
    }
}
