//! Resumes requests after replies of Redis, and carries out verdicts.

use super::host::Host;
use super::instance::Instance;
use super::state::StreamState;
use super::worker::Worker;
use diana_limiter::{Ready, ReadyRequest, Verdict, Waiter};
use diana_policy::port::Request;

/// Reads the request of a stream, and calls a function with it.
pub(crate) type ReadRequest<'a> = dyn Fn(&mut dyn FnMut(&dyn Request)) + 'a;

/// A verdict that was carried out.
pub(crate) enum Applied {
    /// The request passes, and this work of its stream remains.
    Passes(StreamState),
    /// It waits, and the worker has the state of its stream.
    Waits,
    /// It has a response.
    Refused,
}

impl Worker {
    /// Resumes at most `left` requests of an instance that have a reply.
    pub(crate) fn resume_ready(&self, instance: &Instance, host: &dyn Host, left: &mut usize) {
        while *left > 0 && instance.ready() > 0 {
            // The reply may contain permits, even if the client has left.
            instance.record_activity(host);
            let now = instance.now(host);
            match instance.with_limiter(host, |limiter| limiter.next_ready(now)).flatten() {
                None => return,
                Some(Ready::Request(ready)) => {
                    *left -= 1;
                    self.resume(ready, instance, host);
                }
                Some(Ready::Order { stream, result }) => {
                    let reply = instance.order_reply(&result, host);
                    if let Some(stream) = stream {
                        *left -= 1;
                        host.enter(stream);
                        host.reply(&reply);
                        host.enter(host.caller());
                    }
                }
            }
        }
    }

    fn resume(&self, mut ready: ReadyRequest, instance: &Instance, host: &dyn Host) {
        let Waiter { stream, since, .. } = ready.waiter;
        let waited = host.monotonic().saturating_sub(since);
        host.record(&format!("diana.{}.fleet.wait_us", instance.namespace()), waited);
        host.enter(stream);
        let verdict = instance.resume(&mut ready, host);
        let read =
            |refuse: &mut dyn FnMut(&dyn Request)| host.read(instance.reads_headers(), refuse);
        let state = self.take_state(stream);
        let waiter = Some(&ready.waiter);
        if let Applied::Passes(state) =
            self.apply((stream, waiter), verdict, state, instance, &read, host)
        {
            self.store_state(stream, None, state);
            host.resume(stream);
        }
        host.enter(host.caller());
    }

    /// Carries out a verdict on the request of a stream, which `read` reads. Stores the state of
    /// the stream while the request waits. `waiter` is given if it has waited for Redis.
    pub(crate) fn apply(
        &self,
        (stream, waiter): (u32, Option<&Waiter>),
        verdict: Verdict,
        mut state: StreamState,
        instance: &Instance,
        read: &ReadRequest<'_>,
        host: &dyn Host,
    ) -> Applied {
        host.on_decision(stream, waiter, &verdict);
        match verdict {
            Verdict::Admit(permit, report) => {
                state.admit(permit, report.as_deref(), host);
                Applied::Passes(state)
            }
            Verdict::Hold(mut held) => {
                state.admit(std::mem::take(&mut held.permit), Some(&held.report), host);
                self.store_state(stream, None, state);
                self.hold(stream, instance, *held);
                Applied::Waits
            }
            Verdict::Pending { id } => {
                self.store_state(stream, Some(id), state);
                Applied::Waits
            }
            Verdict::Refuse(mut refusal) => {
                read(&mut |request| state.refuse(&mut refusal, request, host));
                Applied::Refused
            }
        }
    }
}
