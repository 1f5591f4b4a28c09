//! Resumes requests after replies of Redis.

use super::Worker;
use crate::host::Host;
use crate::instance::Instance;
use diana_limiter::{Ready, ReadyRequest, Verdict, Waiter};

impl Worker {
    /// Resumes at most `left` requests of an instance that have a reply.
    pub(crate) fn resume_ready(&self, instance: &Instance, host: &dyn Host, left: &mut usize) {
        while *left > 0 && instance.ready() > 0 {
            // The reply may contain permits, even if the client has left.
            instance.record_activity(host);
            match instance.next_ready(host) {
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
        let Waiter { id, stream, since } = ready.waiter;
        let waited = host.monotonic().saturating_sub(since);
        host.record(&format!("diana.{}.fleet.wait_us", instance.namespace()), waited);
        host.enter(stream);
        let verdict = instance.resume(&mut ready, host);
        host.on_decision(stream, Some(&ready.waiter), &verdict);
        let mut state = self.take_state(stream);
        match verdict {
            Verdict::Admit(permit, report) => {
                state.admit(permit, report.as_deref(), host);
                self.store_state(stream, None, state);
                host.resume(stream);
            }
            Verdict::Hold(mut held) => {
                state.admit(std::mem::take(&mut held.permit), Some(&held.report), host);
                self.store_state(stream, None, state);
                self.hold(stream, instance, held);
            }
            Verdict::Refuse(mut refusal) => host.read(instance.reads_headers(), &mut |request| {
                state.refuse(&mut refusal, request, host);
            }),
            // It waits for the next round under the same number.
            Verdict::Pending { .. } => self.store_state(stream, Some(id), state),
        }
        host.enter(host.caller());
    }
}
