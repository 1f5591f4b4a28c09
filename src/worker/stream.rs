//! One stream: its request is decided about, may wait, and goes on or is refused.

use std::rc::Rc;

use super::admin::Answered;
use super::host::Host;
use super::instance::Instance;
use super::operator::Explanation;
use super::reply::AdminReply;
use super::waiting::{Field, Late};
use super::worker::Worker;
use diana_limiter::verdict::Verdict;
use diana_policy::port::{Ending, Request};
use diana_store::permit::{End, Permit};

/// A stream, from its request's headers until it ends.
pub struct Stream {
    instance: Rc<Instance>,
    /// The host's number of the stream.
    id: u32,
    /// What its instance knows with it, unless the request just goes on.
    late: Option<Rc<Late>>,
    /// What is to be settled when it ends.
    permit: Permit,
    /// Whether it may still wait.
    held: bool,
}

impl Stream {
    /// A stream whose request has not come yet, by the host's number.
    #[must_use]
    pub fn new(instance: Rc<Instance>, id: u32) -> Stream {
        Stream { instance, id, late: None, permit: Permit::NONE, held: false }
    }

    /// The host's number of it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What it is judged by.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Decides about a request that has come to an instance. Whether it goes on; otherwise it was answered, or waits until
    /// the host is told to let it go on. And its stream if it may have something left to do, which few have.
    pub fn begin(
        instance: &Rc<Instance>,
        id: u32,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) -> (bool, Option<Stream>) {
        if instance.asks_who_comes() {
            let mut stream = Stream::new(instance.clone(), id);
            return (stream.request(request, worker, host), Some(stream));
        }
        let is_new = instance.open(host);
        let verdict = instance.decide(request, host);
        if verdict.is_pass() {
            // Nothing is in it; to find that out by dropping it takes a fifteenth of the decision.
            std::mem::forget(verdict);
            if is_new || instance.is_pressed() {
                worker.settle(host);
            }
            return (true, None);
        }
        let mut stream = Stream::new(instance.clone(), id);
        (stream.conclude(verdict, is_new, worker, host), Some(stream))
    }

    /// The same of a stream that was made before its request came.
    #[inline(never)]
    pub fn request(&mut self, request: &dyn Request, worker: &Worker, host: &dyn Host) -> bool {
        let mut asks = None;
        if self.instance.operator().is_some() {
            match self.hear_operator(request, worker, host) {
                Some(explanation) => asks = explanation,
                None => return false,
            }
        }
        let is_told = asks.is_some();
        let is_new = self.instance.open(host);
        let verdict = match asks {
            Some(explanation) => self.decide_explained(explanation, request, host),
            None => self.instance.decide(request, host),
        };
        self.conclude(verdict, is_new || is_told, worker, host)
    }

    /// Carries out a verdict, and sees to it that whatever waits has a clock, as it must after something `new`. Whether the
    /// request goes on.
    #[inline(never)]
    fn conclude(&mut self, verdict: Verdict, new: bool, worker: &Worker, host: &dyn Host) -> bool {
        let goes_on = verdict.is_pass() || self.carry_out(verdict, worker, host);
        // What was refused leaves no more behind than what went on.
        if new || self.held || self.instance.is_pressed() {
            worker.settle(host);
        }
        goes_on
    }

    /// Whether an operator asks why its request is decided about as it is; nothing if the request was an order, and is
    /// answered.
    #[inline(never)]
    fn hear_operator(
        &mut self,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) -> Option<Option<Explanation>> {
        let instance = self.instance.clone();
        let operator = instance.operator()?;
        if let Some(asked) = operator.asks_for(request, &worker.admin_attempts, host) {
            self.operate(asked, request, worker, host);
            return None;
        }
        Some(operator.asks_why(request, &worker.attempts, host))
    }

    /// Does what an operator asks that has borne the token.
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
            Answered::Later(ticket) => {
                let late = self.late().clone();
                self.held = true;
                self.instance.waiting().join(ticket, self.id, late);
            }
        }
        worker.settle(host);
    }

    fn decide_explained(
        &mut self,
        mut explanation: Explanation,
        request: &dyn Request,
        host: &dyn Host,
    ) -> Verdict {
        let (verdict, skipped) = self.instance.decide_explained(request, host);
        explanation.skip(skipped);
        self.late().explain(explanation);
        verdict
    }

    /// Carries out a verdict. Whether the request goes on.
    fn carry_out(&mut self, verdict: Verdict, worker: &Worker, host: &dyn Host) -> bool {
        host.decided(self.id, None, &verdict);
        match verdict {
            Verdict::Admit(permit, report) => {
                self.permit = permit;
                if let Some(report) = &report {
                    self.late().tell(report, host);
                }
                return true;
            }
            Verdict::Hold(mut held) => {
                self.late().admit(std::mem::take(&mut held.permit), Some(&held.report), host);
                self.held = true;
                worker.hold(self.id, &self.instance, held);
            }
            Verdict::Ask { ticket } => {
                let late = self.late().clone();
                self.held = true;
                self.instance.waiting().join(ticket, self.id, late);
            }
            Verdict::Refuse(mut refusal) => {
                self.late.iter().for_each(|late| late.complete(&mut refusal));
                host.refuse(&refusal);
            }
        }
        false
    }

    /// The response has come. The headers to be added to it, if anything is left to do.
    pub fn response(
        &mut self,
        ending: &dyn Ending,
        worker: &Worker,
        host: &dyn Host,
    ) -> Option<Vec<Field>> {
        if self.leave(worker, host) {
            // The host has lost patience, and answered a request that waits.
            self.finish(true, ending, worker, host);
            return None;
        }
        let was_open = self.is_open();
        let fields = self.late.take().map(|late| self.take_over(&late)).unwrap_or_default();
        self.held = false;
        if self.is_open() {
            let permit = &mut self.permit;
            self.instance.with_engine(host, |engine| engine.hear_response(permit, ending));
        }
        was_open.then_some(fields)
    }

    /// Takes over what is to be settled of a request that waited. The headers for its response.
    fn take_over(&mut self, late: &Late) -> Vec<Field> {
        let permit = late.permit();
        if !permit.is_none() {
            self.permit = permit;
        }
        late.fields()
    }

    fn late(&mut self) -> &Rc<Late> {
        self.late.get_or_insert_default()
    }

    /// Whether something is left to do when its response comes, or when it ends, so that [`Stream::end`] is to be called.
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        self.late.is_some() || !self.permit.is_none()
    }

    /// The stream has ended.
    pub fn end(&mut self, ending: &dyn Ending, worker: &Worker, host: &dyn Host) {
        let waits = self.leave(worker, host);
        self.finish(waits, ending, worker, host);
    }

    /// Gives up its place if the request still waits. Whether it did.
    fn leave(&self, worker: &Worker, host: &dyn Host) -> bool {
        self.held && worker.leave(self.id, &self.instance, self.late.as_deref(), host)
    }

    /// Nothing of it is left to do after this.
    fn finish(&mut self, waits: bool, ending: &dyn Ending, worker: &Worker, host: &dyn Host) {
        let late = self.late.take();
        late.iter().for_each(|late| _ = self.take_over(late));
        let permit = std::mem::take(&mut self.permit);
        let is_settled = !permit.is_none();
        if is_settled {
            self.settle(permit, waits, ending, host);
        }
        if std::mem::take(&mut self.held) || is_settled {
            // Last: after it the host speaks of the root, and says nothing of how the stream ended.
            worker.settle(host);
        }
    }

    /// Settles what was reserved for the request, if it did not leave while it waited.
    #[inline(never)]
    fn settle(&self, permit: Permit, waits: bool, ending: &dyn Ending, host: &dyn Host) {
        let now = self.instance.now(host);
        if waits {
            permit.finish(End::Left);
            self.instance.with_engine(host, |engine| engine.take_back(now));
        } else {
            self.instance.with_engine(host, |engine| engine.settle(permit, ending, now));
        }
        // Upkeep hands on what became of it.
        self.instance.open(host);
    }
}
