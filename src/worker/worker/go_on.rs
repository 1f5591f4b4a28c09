//! Resumes requests after replies of Redis.

use std::rc::Rc;

use super::Worker;
use crate::host::Host;
use crate::instance::Instance;
use crate::waiting::Late;
use diana_limiter::Verdict;

impl Worker {
    /// Resumes at most `left` requests of an instance that have a reply.
    pub(crate) fn go_on(&self, instance: &Instance, host: &dyn Host, left: &mut usize) {
        while *left > 0 {
            let next = instance.waiting().ready.borrow_mut().pop_front();
            let Some(resumed) = next else { return };
            // The reply may contain permits, even if the client has left.
            instance.open(host);
            let stream = instance.waiting().streams.borrow_mut().remove(&resumed.ticket);
            if let Some(reply) = instance.told(resumed.ticket, host) {
                if let Some((stream, _)) = stream {
                    *left -= 1;
                    host.enter(stream);
                    host.reply(&reply);
                    host.enter(host.caller());
                }
                continue;
            }
            let Some((stream, late)) = stream else {
                let now = instance.now(host);
                instance.with_limiter(host, |limiter| {
                    limiter.abandon(&resumed, now);
                });
                continue;
            };
            *left -= 1;
            let now = instance.now(host);
            let waited = now.mono.saturating_sub(resumed.since);
            host.record(&format!("diana.{}.fleet.wait_us", instance.namespace()), waited);
            host.enter(stream);
            let verdict = instance.resume(&resumed, now, late.is_explained(), host);
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
            Verdict::Hold(mut held) => {
                late.admit(std::mem::take(&mut held.permit), Some(&held.report), host);
                self.hold(stream, instance, held);
            }
            Verdict::Refuse(mut refusal) => {
                late.complete(&mut refusal);
                host.refuse(&refusal);
            }
            Verdict::Ask { ticket } => instance.waiting().join(ticket, stream, late.clone()),
        }
    }
}
