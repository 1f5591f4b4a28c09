//! Resumes requests after replies of Redis, and carries out verdicts.

use super::host::{Host, Level};
use super::instance::Instance;
use super::state::StreamState;
use super::step::{Next, Step, Steps};
use super::worker::{RELEASES, Worker};
use diana_limiter::{Ready, ReadyRequest, Verdict, Waiter};
use diana_policy::port::Request;

impl Worker {
    /// Resumes requests of an instance that have a reply, until there are as many steps as one call
    /// may have.
    pub(crate) fn resume_ready(&self, instance: &Instance, host: &dyn Host, steps: &mut Steps) {
        while steps.len() < RELEASES && instance.ready() > 0 {
            // The reply may contain permits, even if the client has left.
            instance.record_activity(host);
            let now = instance.now(host);
            match instance.with_limiter(host, |limiter| limiter.next_ready(now)).flatten() {
                None => return,
                Some(Ready::Request(ready)) => {
                    steps.push((ready.waiter.stream, self.resume(ready, instance, host)));
                }
                Some(Ready::Order { stream, result }) => {
                    let reply = instance.order_reply(&result, host);
                    steps.extend(stream.map(|stream| (stream, Step::reply(reply))));
                }
            }
        }
    }

    fn resume(&self, mut ready: ReadyRequest, instance: &Instance, host: &dyn Host) -> Step {
        let Waiter { stream, since, .. } = ready.waiter;
        let waited = host.monotonic().saturating_sub(since);
        instance.record_wait(waited, host);
        let mut step = Step::new(Next::Wait);
        host.request(stream, instance.reads_headers(), &mut |request| {
            let verdict = instance.resume(&mut ready, request, host);
            let (waiter, mut state) = (Some(&ready.waiter), self.take_state(stream));
            step = self.apply((stream, waiter), verdict, &mut state, instance, request, host);
            if let Next::Continue = step.next {
                self.store_state(stream, None, state);
            }
        });
        step
    }

    /// Carries out a verdict on the request of a stream. Takes the state of the stream while the
    /// request waits. `waiter` is given if it has waited for Redis.
    pub(crate) fn apply(
        &self,
        (stream, waiter): (u32, Option<&Waiter>),
        verdict: Verdict,
        state: &mut StreamState,
        instance: &Instance,
        request: &dyn Request,
        host: &dyn Host,
    ) -> Step {
        host.on_decision(stream, waiter, &verdict);
        match verdict {
            Verdict::Admit(permit, mut report) => {
                Step { effects: state.admit(permit, report.as_deref_mut()), next: Next::Continue }
            }
            Verdict::Hold(mut held) => {
                let permit = std::mem::take(&mut held.permit);
                let effects = state.admit(permit, Some(&mut held.report));
                self.store_state(stream, None, std::mem::take(state));
                self.hold(stream, instance, *held);
                Step { effects, next: Next::Wait }
            }
            Verdict::Pending { id } => {
                self.store_state(stream, Some(id), std::mem::take(state));
                Step::new(Next::Wait)
            }
            Verdict::Refuse(mut refusal) => {
                let log = refusal.by.state();
                if refusal.is_logged {
                    host.log(Level::Warn, &log);
                }
                Step::new(Next::Reply(state.refuse(&mut refusal, log, request)))
            }
        }
    }
}
