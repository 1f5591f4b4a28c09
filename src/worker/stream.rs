//! One stream: its request is decided about, may wait, and goes on or is refused.

use std::rc::Rc;

use super::host::Host;
use super::instance::Instance;
use super::waiting::{Late, tell};
use super::worker::Worker;
use diana_core::port::Request;
use diana_core::verdict::Verdict;

/// A stream, from its request's headers until it ends.
pub struct Stream {
    instance: Rc<Instance>,
    /// The host's number of the stream.
    id: u32,
    /// Headers to add to the upstream's response.
    fields: Vec<(&'static str, String)>,
    /// What its instance knows with it, once it waits for an answer.
    late: Option<Rc<Late>>,
    /// Whether it may still wait.
    held: bool,
}

impl Stream {
    /// A stream whose request has not come yet, by the host's number.
    #[must_use]
    pub fn new(instance: Rc<Instance>, id: u32) -> Stream {
        Stream { instance, id, fields: Vec::new(), late: None, held: false }
    }

    /// What it is judged by.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Decides about its request. Whether that goes on; otherwise it was answered, or waits until the host is told
    /// to let it go on.
    pub fn request(&mut self, request: &dyn Request, worker: &Worker, host: &dyn Host) -> bool {
        let is_new = self.instance.open(host);
        let verdict = self.instance.decide(request, host);
        let goes_on = verdict.is_pass() || self.carry_out(verdict, worker, host);
        if is_new || !goes_on || self.instance.is_pressed() {
            worker.settle(host);
        }
        goes_on
    }

    /// Carries out a verdict. Whether the request goes on.
    #[inline(never)]
    fn carry_out(&mut self, verdict: Verdict, worker: &Worker, host: &dyn Host) -> bool {
        host.decided(self.id, None, &verdict);
        match verdict {
            Verdict::Admit(report) => {
                self.fields = report.map(|report| tell(&report, host)).unwrap_or_default();
                return true;
            }
            Verdict::Hold(held) => {
                self.fields = tell(&held.report, host);
                self.held = true;
                worker.hold(self.id, &self.instance, held);
            }
            Verdict::Ask { ticket } => {
                let late = self.late.insert(Rc::default());
                self.held = true;
                self.instance.waiting().join(ticket, self.id, late.clone());
            }
            Verdict::Refuse(refusal) => host.refuse(&refusal),
        }
        false
    }

    /// The response has come. The headers to be added to it.
    pub fn response(&mut self) -> Vec<(&'static str, String)> {
        self.held = false;
        let mut fields = std::mem::take(&mut self.fields);
        if let Some(late) = self.late.take() {
            fields.append(&mut late.fields.take());
        }
        fields
    }

    /// Whether the client may leave before its request went on, so that [`Stream::leave`] is to be called.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.held
    }

    /// The stream has ended.
    pub fn leave(&self, worker: &Worker, host: &dyn Host) {
        if self.held {
            worker.leave(self.id, &self.instance, self.late.as_deref(), host);
        }
    }
}
