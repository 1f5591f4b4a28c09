//! A stream: its request is decided about, may wait, and passes or is refused.

use std::rc::Rc;

use super::admin::Answered;
use super::host::Host;
use super::instance::Instance;
use super::reply::AdminReply;
use super::state::{HeaderField, StreamState};
use super::worker::Worker;
use diana_limiter::Verdict;
use diana_policy::port::{Ending, Request};
use diana_store::permit::{End, Permit};

/// A stream, from the headers of its request to its end.
pub struct Stream {
    instance: Rc<Instance>,
    /// The host's number of the stream.
    id: u32,
    /// The remaining work; the worker has it while the request waits.
    state: StreamState,
    /// Whether the request has waited, and the response has not come.
    waited: bool,
}

impl Stream {
    /// A stream before the arrival of its request, with the host's number for it.
    #[must_use]
    pub fn new(instance: Rc<Instance>, id: u32) -> Stream {
        Stream { instance, id, state: StreamState::default(), waited: false }
    }

    /// The host's number of the stream.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The instance that decides about it.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Decides about a request on its arrival. Returns true if it passes. Otherwise it has a
    /// response, or it waits and the worker resumes it later. Also returns the stream, unless it
    /// needs no further work: most streams do not.
    pub fn begin(
        instance: &Rc<Instance>,
        id: u32,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) -> (bool, Option<Stream>) {
        if instance.has_operator() {
            let mut stream = Stream::new(instance.clone(), id);
            return (stream.request(request, worker, host), Some(stream));
        }
        let is_new = instance.open(host);
        let verdict = instance.decide(request, host);
        if verdict.is_pass() {
            // An empty verdict needs no drop. The check for that would take a fifteenth of the time
            // of the decision.
            std::mem::forget(verdict);
            if is_new || instance.is_pressed() {
                worker.settle(host);
            }
            return (true, None);
        }
        let mut stream = Stream::new(instance.clone(), id);
        (stream.conclude(verdict, is_new, worker, host), Some(stream))
    }

    /// As [`Stream::begin`], for a stream that exists before its request arrives. Returns true if
    /// the request passes.
    #[inline(never)]
    pub fn request(&mut self, request: &dyn Request, worker: &Worker, host: &dyn Host) -> bool {
        let mut asks = None;
        if self.instance.operator().is_some() {
            match self.hear_operator(request, worker, host) {
                Some(header) => asks = header,
                None => return false,
            }
        }
        let is_explained = asks.is_some();
        let is_new = self.instance.open(host);
        let verdict = match asks {
            Some(header) => {
                self.state.explain(header);
                self.instance.decide_explained(request, host)
            }
            None => self.instance.decide(request, host),
        };
        self.conclude(verdict, is_new || is_explained, worker, host)
    }

    /// Carries out a verdict. Sets a timer if the request waits, if there is Redis work, or if
    /// `new` is true. Returns true if the request passes.
    #[inline(never)]
    fn conclude(&mut self, verdict: Verdict, new: bool, worker: &Worker, host: &dyn Host) -> bool {
        let goes_on = verdict.is_pass() || self.carry_out(verdict, worker, host);
        // Refusals leave no other work than admitted requests.
        if new || self.waited || self.instance.is_pressed() {
            worker.settle(host);
        }
        goes_on
    }

    /// Returns the explanation to be filled if an operator wants one. The outer `None` means that
    /// the request was an order and has its reply.
    #[inline(never)]
    fn hear_operator(
        &mut self,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) -> Option<Option<Rc<str>>> {
        let instance = self.instance.clone();
        let operator = instance.operator()?;
        if let Some(asked) = operator.asks_for(request, &worker.admin_attempts, host) {
            self.operate(asked, request, worker, host);
            return None;
        }
        Some(operator.asks_why(request, &worker.attempts, host))
    }

    /// Handles an order of an operator.
    fn operate(
        &mut self,
        asked: Option<(String, Vec<u8>)>,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) {
        let answered = match asked {
            None => Answered::Now(AdminReply::nothing()),
            Some((rest, query)) => self.instance.operate((&rest, &query), request, host),
        };
        match answered {
            Answered::Now(reply) => host.reply(&reply),
            Answered::Later(id) => self.wait_for(id, worker, host),
        }
        worker.settle(host);
    }

    /// Carries out a verdict. Returns true if the request passes.
    fn carry_out(&mut self, verdict: Verdict, worker: &Worker, host: &dyn Host) -> bool {
        host.decided(self.id, None, &verdict);
        match verdict {
            Verdict::Admit(permit, report) => {
                self.state.admit(permit, report.as_deref(), host);
                return true;
            }
            Verdict::Hold(mut held) => {
                let permit = std::mem::take(&mut held.permit);
                self.state.admit(permit, Some(&held.report), host);
                self.wait(None, worker);
                worker.hold(self.id, &self.instance, held);
            }
            Verdict::Pending { id } => self.wait_for(id, worker, host),
            Verdict::Refuse(mut refusal) => self.state.refuse(&mut refusal, host),
        }
        false
    }

    /// The request waits for replies of Redis.
    fn wait_for(&mut self, id: u64, worker: &Worker, host: &dyn Host) {
        self.instance.wait(id, self.id, host);
        self.wait(Some(id), worker);
    }

    fn wait(&mut self, pending: Option<u64>, worker: &Worker) {
        self.waited = true;
        worker.keep(self.id, pending, std::mem::take(&mut self.state));
    }

    /// The response headers have arrived. Returns the headers to add, if there is work left.
    pub fn response(
        &mut self,
        ending: &dyn Ending,
        worker: &Worker,
        host: &dyn Host,
    ) -> Option<Vec<HeaderField>> {
        if self.leave(worker, host) {
            // The host has timed out, and responded to a waiting request itself.
            self.finish(true, ending, worker, host);
            return None;
        }
        let was_open = self.is_open();
        self.take_over(worker);
        let fields = self.state.take_fields();
        if self.is_open() {
            let permit = &mut self.state.permit;
            self.instance.with_limiter(host, |limiter| limiter.on_response(permit, ending));
        }
        was_open.then_some(fields)
    }

    /// Takes the state of a request that has waited back from the worker. Returns true if it has waited.
    fn take_over(&mut self, worker: &Worker) -> bool {
        let waited = std::mem::take(&mut self.waited);
        if waited {
            self.state = worker.take_state(self.id);
        }
        waited
    }

    /// Returns true if there is work for the response or the end of the stream, so that
    /// [`Stream::end`] must be called.
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        self.waited || !self.state.is_empty()
    }

    /// The stream has ended.
    pub fn end(&mut self, ending: &dyn Ending, worker: &Worker, host: &dyn Host) {
        let waits = self.leave(worker, host);
        self.finish(waits, ending, worker, host);
    }

    /// Gives up the queue position if the request still waits. Returns true if it did.
    fn leave(&self, worker: &Worker, host: &dyn Host) -> bool {
        self.waited && worker.leave(self.id, &self.instance, host)
    }

    /// Completes the work of the stream.
    fn finish(&mut self, waits: bool, ending: &dyn Ending, worker: &Worker, host: &dyn Host) {
        let waited = self.take_over(worker);
        let StreamState { permit, .. } = std::mem::take(&mut self.state);
        let is_settled = !permit.is_none();
        if is_settled {
            self.settle(permit, waits, ending, host);
        }
        if waited || is_settled {
            // Last, since it selects the root, and the host then no longer reports how the stream
            // ended.
            worker.settle(host);
        }
    }

    /// Settles the charges of the request. Cancels them if the client left while it waited.
    #[inline(never)]
    fn settle(&self, permit: Permit, waits: bool, ending: &dyn Ending, host: &dyn Host) {
        let now = self.instance.now(host);
        if waits {
            permit.finish(End::Left);
            self.instance.with_limiter(host, |limiter| limiter.return_charges(now));
        } else {
            self.instance.with_limiter(host, |limiter| limiter.finish(permit, ending, now));
        }
        // Upkeep reports the results.
        self.instance.open(host);
    }
}
