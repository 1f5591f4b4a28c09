//! Work for Redis during calls of the host.

use super::Instance;
use crate::host::{Host, Level};
use diana_policy::port::Answer;

impl Instance {
    /// Makes the calls to Redis that are due.
    pub(crate) fn work_for_fleet(&self, host: &dyn Host) {
        let now = self.now(host);
        let ready = self.with_limiter(host, |limiter| limiter.work(now, host));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    /// Processes the reply to a call of this instance, and sends the next calls if this root
    /// `sends`. Returns false if another instance made the call.
    pub(crate) fn take_answer(
        &self,
        token: u32,
        answer: &Answer<'_>,
        sends: bool,
        host: &dyn Host,
    ) -> bool {
        let now = self.now(host);
        let ready = self.with_limiter(host, |limiter| {
            let mut ready = limiter.answer(token, answer, now)?;
            if sends {
                ready.append(&mut limiter.work(now, host));
            }
            Some(ready)
        });
        let ready = ready.flatten();
        let taken = ready.is_some();
        if taken {
            // It may contain permits for a caller without further requests.
            self.begin_upkeep(host);
        }
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
        taken
    }

    /// Drops the calls of the root that has ended.
    pub(crate) fn lose_calls(&self, host: &dyn Host) {
        let now = self.now(host);
        let ready = self.with_limiter(host, |limiter| limiter.lose(host.caller(), now));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    /// Logs changes of the state of Redis.
    pub(crate) fn tell_news(&self, host: &dyn Host) {
        let news = self.with_limiter(host, |limiter| limiter.news()).unwrap_or_default();
        news.iter().for_each(|line| host.log(Level::Warn, line));
    }
}
