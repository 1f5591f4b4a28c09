//! Work for the authority of the fleet during calls of the host.

use super::Instance;
use crate::host::{Host, Level};
use crate::redis::RedisConnection;
use diana_limiter::Ready;
use diana_policy::port::Answer;

impl Instance {
    /// Makes the calls to Redis that are due.
    pub(crate) fn send_calls(&self, host: &dyn Host) {
        let now = self.now(host);
        self.with_limiter(host, |limiter| limiter.work(now, host));
    }

    /// Processes the reply to a call of this instance, and sends the next calls if this root
    /// `may_send`. Returns false if another instance made the call.
    pub(crate) fn on_reply(
        &self,
        token: u32,
        answer: &Answer<'_>,
        may_send: bool,
        host: &dyn Host,
    ) -> bool {
        let now = self.now(host);
        let taken = self.with_limiter(host, |limiter| {
            let taken = limiter.on_reply(token, answer, now);
            if taken && may_send {
                limiter.work(now, host);
            }
            taken
        });
        let taken = taken.unwrap_or(false);
        if taken {
            // It may contain permits for a caller without further requests.
            self.schedule_maintenance(host);
        }
        taken
    }

    /// Drops the calls of the root that has ended.
    pub(crate) fn on_root_ended(&self, host: &dyn Host) {
        let now = self.now(host);
        self.with_limiter(host, |limiter| limiter.on_root_ended(host.caller(), now));
    }

    /// The next request or order with a reply of Redis.
    pub(crate) fn next_ready(&self, host: &dyn Host) -> Option<Ready> {
        let now = self.now(host);
        self.with_limiter(host, |limiter| limiter.next_ready(now)).flatten()
    }

    /// The client of a pending request is gone. Returns true if the request was still pending.
    pub(crate) fn cancel(&self, id: u64, host: &dyn Host) -> bool {
        self.with_limiter(host, |limiter| limiter.cancel(id)).unwrap_or(false)
    }

    /// Logs changes of the state of Redis.
    pub(crate) fn log_fleet(&self, host: &dyn Host) {
        let lines = self.redis.as_ref().map(RedisConnection::take_log_lines).unwrap_or_default();
        lines.iter().for_each(|line| host.log(Level::Warn, line));
    }
}
