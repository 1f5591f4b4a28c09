//! Rules for the fleet: requests that wait for Redis, which is reached through the host.
//!
//! Whoever of this VM's gates asks Redis is on one list: a root that is being replaced may no longer
//! be called, so whichever root is called goes on for all of them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use proxy_wasm::types::LogLevel;

use super::gate::Gate;
use super::outside::{self, HostCallout, HostEnvironment};
use super::stats::HostMetrics;
use super::{abi, http};
use crate::config::policy::Policy;
use crate::engine::Resumed;
use crate::fleet::desk::Way;
use crate::fleet::script::Login;
use crate::port::{Environment, Metrics};
use crate::tickets::Tickets;
use crate::time::Micros;
use crate::verdict::Verdict;

thread_local! {
    static GATES: RefCell<Vec<Rc<Gate>>> = const { RefCell::new(Vec::new()) };
}

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

    fn is_empty(&self) -> bool {
        self.streams.borrow().is_empty()
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

/// Adds a gate that asks Redis.
pub(super) fn join(gate: &Rc<Gate>) {
    GATES.with_borrow_mut(|gates| gates.push(gate.clone()));
}

/// Does what is due for all gates, and lets at most `most` requests go on. `root` is the context that
/// the host is calling about.
pub(super) fn tick(root: u32, most: usize) {
    let mut left = most;
    for gate in gates() {
        gate.work_for_fleet();
        gate.go_on(root, &mut left);
        gate.tell_news();
    }
    // One that was replaced is kept for as long as somebody waits for it.
    GATES.with_borrow_mut(|gates| {
        gates.retain(|gate| !gate.is_retired() || !gate.waiting().is_empty());
    });
}

/// Takes the answer to a call, if one of the gates made it. Whether it did.
pub(super) fn answer(root: u32, token: u32, headers: usize, size: usize, most: usize) -> bool {
    let mut left = most;
    outside::answer(headers, size, |answer| {
        gates().iter().any(|gate| {
            let taken = gate.take_answer(token, answer, &HostCallout);
            if taken {
                gate.go_on(root, &mut left);
                gate.tell_news();
            }
            taken
        })
    })
}

/// When a root is to be called the next time.
pub(super) fn next(now: Micros) -> Option<Micros> {
    gates().iter().filter_map(|gate| gate.next_for_fleet(now)).min()
}

fn gates() -> Vec<Rc<Gate>> {
    GATES.with_borrow(Vec::clone)
}

impl Gate {
    fn work_for_fleet(&self) {
        let now = self.now();
        let ready = self.with_engine(|engine| engine.work(now, &HostCallout));
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
    }

    fn take_answer(
        &self,
        token: u32,
        answer: &crate::port::Answer<'_>,
        callout: &HostCallout,
    ) -> bool {
        let now = self.now();
        let ready = self.with_engine(|engine| engine.answer(token, answer, now, callout)).flatten();
        let taken = ready.is_some();
        self.waiting().ready.borrow_mut().extend(ready.unwrap_or_default());
        taken
    }

    fn next_for_fleet(&self, now: Micros) -> Option<Micros> {
        if !self.waiting().ready.borrow().is_empty() {
            return Some(now);
        }
        self.with_engine(|engine| engine.next(now)).flatten()
    }

    fn tell_news(&self) {
        let news = self.with_engine(|engine| engine.news()).unwrap_or_default();
        news.iter().for_each(|line| abi::log(LogLevel::Warn as u32, line));
    }

    /// Lets requests go on whose answers have come.
    fn go_on(&self, root: u32, left: &mut usize) {
        while *left > 0 {
            let next = self.waiting().ready.borrow_mut().pop_front();
            let Some(resumed) = next else { return };
            let stream = self.waiting().streams.borrow_mut().remove(resumed.ticket);
            let Some((stream, late)) = stream else {
                self.with_engine(|engine| {
                    engine.abandon(resumed.ticket, &resumed.answered, self.now())
                });
                continue;
            };
            *left -= 1;
            let now = self.now();
            let waited = now.mono.saturating_sub(resumed.since);
            HostMetrics.record(&format!("diana.{}.fleet.wait_us", self.namespace()), waited);
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
