//! A stream: its request is decided about, may wait, and passes or is refused.

use std::rc::Rc;

use super::admin::AdminOutcome;
use super::host::Host;
use super::instance::Instance;
use super::operator::OperatorRequest;
use super::reply;
use super::state::StreamState;
use super::step::{Next, Step};
use super::worker::Worker;
use diana_limiter::Verdict;
use diana_policy::headers::Headers;
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
    has_waited: bool,
}

impl Stream {
    /// A stream before the arrival of its request, with the host's number for it.
    #[must_use]
    pub fn new(instance: Rc<Instance>, id: u32) -> Stream {
        Stream { instance, id, state: StreamState::default(), has_waited: false }
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

    /// Decides about a request on its arrival. Also returns the stream, unless it needs no further
    /// work: most streams do not.
    pub fn begin(
        instance: &Rc<Instance>,
        id: u32,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) -> (Step, Option<Stream>) {
        if instance.has_operator() {
            let mut stream = Stream::new(instance.clone(), id);
            return (stream.request(request, worker, host), Some(stream));
        }
        let is_new = instance.record_request(host);
        let verdict = instance.decide(request, id, host);
        if verdict.is_pass() {
            // An empty verdict needs no drop. The check for that would take a fifteenth of the time
            // of the decision.
            std::mem::forget(verdict);
            if is_new || instance.has_fleet_work() {
                worker.schedule(host);
            }
            return (Step::default(), None);
        }
        let mut stream = Stream::new(instance.clone(), id);
        (stream.conclude(verdict, is_new, request, worker, host), Some(stream))
    }

    /// Refuses a request from which a forged mark was removed, where rules depend on the route and the
    /// host only knows that of the former headers: the client would choose the rules that count it.
    pub fn refuse_forged(instance: &Instance, worker: &Worker, host: &dyn Host) -> Step {
        if instance.record_request(host) {
            worker.schedule(host);
        }
        Step::reply(reply::forged())
    }

    /// As [`Stream::begin`], for a stream that exists before its request arrives.
    #[inline(never)]
    pub fn request(&mut self, request: &dyn Request, worker: &Worker, host: &dyn Host) -> Step {
        let (mut explanation_header, mut removed) = (None, None);
        if let Some(operator) = self.instance.operator() {
            match operator.read(request, worker, host) {
                OperatorRequest::None => {}
                OperatorRequest::Explanation { header, is_right } => {
                    removed = Some(header.as_ref().into());
                    explanation_header = is_right.then_some(header);
                }
                OperatorRequest::Order { path, query } => {
                    self.instance.record_request(host);
                    let outcome = self.instance.operate((&path, &query), (request, self.id), host);
                    return self.respond(outcome, worker, host);
                }
                OperatorRequest::Denied => {
                    self.instance.record_request(host);
                    return self.respond(AdminOutcome::Reply(reply::not_found()), worker, host);
                }
            }
        }
        let is_explained = explanation_header.is_some();
        let is_new = self.instance.record_request(host);
        let verdict = match explanation_header {
            Some(header) => {
                self.state.explain(header);
                self.instance.decide_explained(request, self.id, host)
            }
            None => self.instance.decide(request, self.id, host),
        };
        let mut step = self.conclude(verdict, is_new || is_explained, request, worker, host);
        if removed.is_some() {
            step.effects.get_or_insert_default().removed = removed;
        }
        step
    }

    /// Carries out a verdict. Sets a timer if the request waits, if there is Redis work, or if
    /// `is_new` is true.
    #[inline(never)]
    fn conclude(
        &mut self,
        verdict: Verdict,
        is_new: bool,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) -> Step {
        let Stream { instance, id, state, .. } = self;
        let step = match verdict.is_pass() {
            true => Step::default(),
            false => worker.apply((*id, None), verdict, state, instance, request, host),
        };
        self.has_waited = matches!(step.next, Next::Wait);
        // Refused requests may leave work for Redis, too.
        if is_new || self.has_waited || self.instance.has_fleet_work() {
            worker.schedule(host);
        }
        step
    }

    /// Responds to an operator, at once or after the reply of Redis.
    fn respond(&mut self, outcome: AdminOutcome, worker: &Worker, host: &dyn Host) -> Step {
        let step = match outcome {
            AdminOutcome::Reply(reply) => Step::reply(reply),
            AdminOutcome::Pending(id) => {
                self.has_waited = true;
                worker.store_state(self.id, Some(id), std::mem::take(&mut self.state));
                Step::new(Next::Wait)
            }
        };
        worker.schedule(host);
        step
    }

    /// The response headers have arrived. Returns the headers to add, if there is work left.
    pub fn response(
        &mut self,
        ending: &dyn Ending,
        worker: &Worker,
        host: &dyn Host,
    ) -> Option<Headers> {
        if self.leave(worker, host) {
            // The host has timed out, and responded to a waiting request itself.
            self.finish(true, ending, worker, host);
            return None;
        }
        let was_open = self.is_open();
        self.take_state(worker);
        let fields = self.state.take_fields(ending);
        if self.is_open() {
            let permit = &mut self.state.permit;
            self.instance.with_limiter(host, |limiter| limiter.on_response(permit, ending));
        }
        was_open.then_some(fields)
    }

    /// The response trailers have arrived, after the headers.
    pub fn trailers(&mut self, ending: &dyn Ending, host: &dyn Host) {
        let permit = &mut self.state.permit;
        if !permit.is_none() {
            self.instance.with_limiter(host, |limiter| limiter.on_trailers(permit, ending));
        }
    }

    /// Takes the state back from the worker if the request has waited. Returns true if it has.
    fn take_state(&mut self, worker: &Worker) -> bool {
        let has_waited = std::mem::take(&mut self.has_waited);
        if has_waited {
            self.state = worker.take_state(self.id);
        }
        has_waited
    }

    /// Returns true if there is work for the response or the end of the stream, so that
    /// [`Stream::end`] must be called.
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        self.has_waited || !self.state.is_empty()
    }

    /// Returns true if the bytes of the request's body are read at the end of the stream, or may be if the request waits: a
    /// host without that number counts them.
    #[must_use]
    #[inline]
    pub fn reads_request_bytes(&mut self) -> bool {
        self.instance.reads_request_bytes((!self.has_waited).then_some(&mut self.state.permit))
    }

    /// The stream has ended.
    pub fn end(&mut self, ending: &dyn Ending, worker: &Worker, host: &dyn Host) {
        let was_waiting = self.leave(worker, host);
        self.finish(was_waiting, ending, worker, host);
    }

    /// Gives up the queue position if the request still waits. Returns true if it did.
    fn leave(&self, worker: &Worker, host: &dyn Host) -> bool {
        self.has_waited && worker.leave(self.id, &self.instance, host)
    }

    /// Completes the work of the stream.
    fn finish(&mut self, was_waiting: bool, ending: &dyn Ending, worker: &Worker, host: &dyn Host) {
        let has_waited = self.take_state(worker);
        let StreamState { permit, .. } = std::mem::take(&mut self.state);
        let has_charges = !permit.is_none();
        if has_charges {
            self.settle(permit, was_waiting, ending, host);
        }
        if has_waited || has_charges {
            worker.schedule(host);
        }
    }

    /// Settles the charges of the request. Cancels them if the client left while it waited.
    #[inline(never)]
    fn settle(&self, permit: Permit, was_waiting: bool, ending: &dyn Ending, host: &dyn Host) {
        let now = self.instance.now(host);
        if was_waiting {
            permit.finish(End::Left);
            self.instance.with_limiter(host, |limiter| limiter.return_charges(now));
        } else {
            self.instance.with_limiter(host, |limiter| limiter.finish(permit, ending, now));
        }
        // Upkeep reports the results.
        self.instance.record_activity(host);
    }
}
