//! Rules for the fleet: requests that wait for Redis, which is reached through the host.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use proxy_wasm::types::LogLevel;

use super::gate::Gate;
use super::outside::{HostCallout, HostEnvironment};
use super::stats::HostMetrics;
use super::{abi, http};
use diana_core::engine::Resumed;
use diana_core::fleet::desk::Way;
use diana_core::fleet::script::Login;
use diana_core::policy::Policy;
use diana_core::port::{Answer, Environment, Metrics};
use diana_core::tickets::Tickets;
use diana_core::verdict::Verdict;

/// What a stream and its gate know together of a request that waits.
#[derive(Default)]
pub(super) struct Late {
    /// Under which the answer comes.
    ticket: Cell<u64>,
    /// Headers to add to the upstream's response.
    pub(super) fields: Cell<Vec<(&'static str, String)>>,
}

/// The requests of one gate that wait.
#[derive(Default)]
pub(super) struct Waiting {
    streams: RefCell<Tickets<(u32, Rc<Late>)>>,
    /// Those whose answers have come.
    ready: RefCell<VecDeque<Resumed>>,
}

impl Waiting {
    /// Lets a stream wait.
    pub(super) fn join(&self, ticket: u64, stream: u32, late: Rc<Late>) {
        late.ticket.set(ticket);
        self.streams.borrow_mut().insert(ticket, (stream, late));
    }

    /// Forgets a stream that ended. Its ticket, if it still waited.
    pub(super) fn leave(&self, late: &Late) -> Option<u64> {
        let ticket = late.ticket.get();
        self.streams.borrow_mut().remove(ticket).map(|_| ticket)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.streams.borrow().is_empty()
    }

    /// Whether answers have come with which nobody went on yet.
    pub(super) fn has_answers(&self) -> bool {
        !self.ready.borrow().is_empty()
    }
}

/// How Redis is reached, if there is one.
///
/// # Errors
///
/// If a variable is not there.
pub(super) fn way(policy: &Policy) -> Result<Option<Way>, String> {
    let Some(redis) = &policy.redis else { return Ok(None) };
    let variable = |key: &str, name: &Option<String>| {
        let Some(name) = name else { return Ok(None) };
        HostEnvironment.variable(name).map(Some).ok_or_else(|| {
            format!(
                "redis.{key}: no variable `{name}` in the environment of the VM; see \
                 `environment_variables` of `vm_config`"
            )
        })
    };
    let username = variable("username_env", &redis.username_env)?;
    let password = variable("password_env", &redis.password_env)?;
    let login = Login { username, password, db: redis.db };
    Ok(Some(Way { cluster: redis.cluster.clone(), timeout: redis.timeout, login }))
}

impl Gate {
    /// Does what is due between the gateway and Redis.
    pub(super) fn work_for_fleet(&self, callout: &HostCallout) {
        let now = self.now();
        let ready = self.with_engine(|engine| engine.work(now, callout));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    /// Takes the answer to a call, if it is one of this gate's. Whether it is.
    pub(super) fn take_answer(
        &self,
        token: u32,
        answer: &Answer<'_>,
        callout: &HostCallout,
    ) -> bool {
        let now = self.now();
        let ready = self.with_engine(|engine| engine.answer(token, answer, now, callout)).flatten();
        let taken = ready.is_some();
        if taken {
            // It may bring permits that nobody comes for.
            self.begin_upkeep();
        }
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
        taken
    }

    /// Forgets the calls that a root made which has ended.
    pub(super) fn lose_calls(&self, root: u32) {
        let now = self.now();
        let ready = self.with_engine(|engine| engine.lose(root, now));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    /// Writes to the log what there is to tell about Redis.
    pub(super) fn tell_news(&self) {
        let news = self.with_engine(|engine| engine.news()).unwrap_or_default();
        news.iter().for_each(|line| abi::log(LogLevel::Warn as u32, line));
    }

    /// Lets requests go on whose answers have come.
    pub(super) fn go_on(&self, root: u32, left: &mut usize) {
        while *left > 0 {
            let next = self.waiting().ready.borrow_mut().pop_front();
            let Some(resumed) = next else { return };
            // It may bring permits, whether its client is still there or not.
            self.open();
            let stream = self.waiting().streams.borrow_mut().remove(resumed.ticket);
            let Some((stream, late)) = stream else {
                self.with_engine(|engine| {
                    engine.abandon(resumed.ticket, &resumed.answered, self.now())
                });
                continue;
            };
            *left -= 1;
            let now = self.now();
            if resumed.patience.is_none() {
                let waited = now.mono.saturating_sub(resumed.since);
                HostMetrics.record(&format!("diana.{}.fleet.wait_us", self.namespace()), waited);
            }
            abi::set_effective_context(stream);
            let verdict = self.with_engine(|engine| engine.resume(&resumed, now)).flatten();
            let verdict = verdict.unwrap_or_else(|| self.decide_again(&resumed, &self.request()));
            self.carry_out(verdict, stream, &late, root);
            abi::set_effective_context(root);
        }
    }

    fn carry_out(&self, verdict: Verdict, stream: u32, late: &Rc<Late>, root: u32) {
        match verdict {
            Verdict::Admit(report) => {
                late.fields.set(http::report(report));
                abi::resume(stream, root);
            }
            Verdict::Hold(mut held) => {
                late.fields.set(http::report(std::mem::take(&mut held.report)));
                self.hold(stream, held);
            }
            Verdict::Refuse(refusal) => http::refuse(&refusal),
            Verdict::Ask { ticket } => self.waiting().join(ticket, stream, late.clone()),
        }
    }
}
