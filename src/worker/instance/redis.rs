//! What an instance does about Redis, when the host calls.

use super::Instance;
use crate::host::{Host, Level};
use diana_policy::port::Answer;

impl Instance {
    /// Does what is due between the gateway and Redis.
    pub(crate) fn work_for_fleet(&self, host: &dyn Host) {
        let now = self.now(host);
        let ready = self.with_engine(host, |engine| engine.work(now, host));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    /// Takes the answer to a call, if it is one of this instance's, and does what is due if this root `sends`.
    /// Whether it is.
    pub(crate) fn take_answer(
        &self,
        token: u32,
        answer: &Answer<'_>,
        sends: bool,
        host: &dyn Host,
    ) -> bool {
        let now = self.now(host);
        let ready = self.with_engine(host, |engine| {
            let mut ready = engine.answer(token, answer, now)?;
            if sends {
                ready.append(&mut engine.work(now, host));
            }
            Some(ready)
        });
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
