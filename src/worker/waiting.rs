//! Requests that wait for Redis, or for permits that others hold.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::host::{Host, Level};
use super::instance::Instance;
use super::worker::Worker;
use diana_core::engine::Resumed;
use diana_core::permit::{End, Permit};
use diana_core::port::Answer;
use diana_core::report::Report;
use diana_core::tickets::Tickets;
use diana_core::verdict::Verdict;

/// What a stream and its instance know together of a request that waits, or of which something is left to
/// do when the response comes.
#[derive(Default)]
pub(crate) struct Late {
    /// Under which the answer comes.
    ticket: Cell<Option<u64>>,
    /// Headers to add to the upstream's response.
    fields: Cell<Vec<(&'static str, String)>>,
    /// What is reserved for the request.
    permit: Cell<Permit>,
}

impl Late {
    /// The request goes on by a permit, at once or later, and this is told of it.
    pub(crate) fn admit(&self, permit: Permit, report: Option<&Report>, host: &dyn Host) {
        self.permit.set(permit);
        report.into_iter().for_each(|report| self.fields.set(tell(report, host)));
    }

    /// The response has come. The headers to be added to it.
    pub(crate) fn end(&self) -> Vec<(&'static str, String)> {
        self.permit.take().finish(End::Served);
        self.fields.take()
    }
}

/// The requests of one instance that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    streams: RefCell<Tickets<(u32, Rc<Late>)>>,
    /// Those whose answers have come.
    ready: RefCell<VecDeque<Resumed>>,
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
        self.streams.borrow_mut().remove(ticket).map(|_| ticket)
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.borrow().is_empty()
    }

    /// How many answers have come with which nobody went on yet.
    pub(crate) fn answered(&self) -> usize {
        self.ready.borrow().len()
    }
}

impl Instance {
    /// Does what is due between the gateway and Redis.
    pub(crate) fn work_for_fleet(&self, host: &dyn Host) {
        let now = self.now(host);
        let ready = self.with_engine(host, |engine| engine.work(now, host));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    /// Takes the answer to a call, if it is one of this instance's. Whether it is.
    pub(crate) fn take_answer(&self, token: u32, answer: &Answer<'_>, host: &dyn Host) -> bool {
        let now = self.now(host);
        let ready = self.with_engine(host, |engine| engine.answer(token, answer, now, host));
        let ready = ready.flatten();
        let taken = ready.is_some();
        if taken {
            // It may bring permits that nobody comes for.
            self.begin_upkeep(host);
        }
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
        taken
    }

    /// Forgets the calls that the root made which has ended.
    pub(crate) fn lose_calls(&self, host: &dyn Host) {
        let now = self.now(host);
        let ready = self.with_engine(host, |engine| engine.lose(host.caller(), now));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    /// Writes to the log what there is to tell about Redis.
    pub(crate) fn tell_news(&self, host: &dyn Host) {
        let news = self.with_engine(host, |engine| engine.news()).unwrap_or_default();
        news.iter().for_each(|line| host.log(Level::Warn, line));
    }
}

impl Worker {
    /// Lets requests of an instance go on whose answers have come, at most `left`.
    pub(crate) fn go_on(&self, instance: &Instance, host: &dyn Host, left: &mut usize) {
        while *left > 0 {
            let next = instance.waiting().ready.borrow_mut().pop_front();
            let Some(resumed) = next else { return };
            // It may bring permits, whether its client is still there or not.
            instance.open(host);
            let stream = instance.waiting().streams.borrow_mut().remove(resumed.ticket);
            let Some((stream, late)) = stream else {
                let now = instance.now(host);
                instance.with_engine(host, |engine| {
                    engine.abandon(&resumed, now);
                });
                continue;
            };
            *left -= 1;
            let now = instance.now(host);
            if resumed.patience.is_none() {
                let waited = now.mono.saturating_sub(resumed.since);
                let name = format!("diana.{}.fleet.wait_us", instance.namespace());
                host.record(&name, waited);
            }
            host.enter(stream);
            let verdict = instance.resume(&resumed, now, host);
            host.decided(stream, Some(&resumed), &verdict);
            self.carry_out(verdict, instance, stream, &late, host);
            host.enter(host.caller());
        }
    }

    fn carry_out(
        &self,
        verdict: Verdict,
        instance: &Instance,
        stream: u32,
        late: &Rc<Late>,
        host: &dyn Host,
    ) {
        match verdict {
            Verdict::Admit(permit, report) => {
                late.admit(permit, report.as_deref(), host);
                host.resume(stream);
            }
            Verdict::Hold(held) => {
                late.admit(Permit::NONE, Some(&held.report), host);
                self.hold(stream, instance, held);
            }
            Verdict::Refuse(refusal) => host.refuse(&refusal),
            Verdict::Ask { ticket } => instance.waiting().join(ticket, stream, late.clone()),
        }
    }
}

/// Tells of a request that goes on. The headers for its response.
fn tell(report: &Report, host: &dyn Host) -> Vec<(&'static str, String)> {
    if let Some(record) = &report.by {
        host.tell(&record.state());
    }
    report.headers()
}
