//! Configurations of the filter, from Envoy's main thread.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use diana_config::Reader;
use diana_policy::{ModuleKind, OnFault, Policy, Settling, Switches};

use crate::abi::{self, Call, ConfigCall, ConfigScheduler, LogLevel, log};
use crate::host::FIRST_ROOT;
use crate::metrics::{self, MetricIds};
use crate::password::Password;
use crate::{calls, clock, slot, switches};

/// Why a rule is refused.
const NEEDS_ENDS: &str = "`count` and `cost: {response: …}` need Envoy 1.39 or later in the native module, since \
                          this Envoy does not report how a stream ended";

/// The event by which the main thread makes calls and reports metrics.
const WORK: u64 = 0;

/// The event by which it looks at what operators change without an update.
const LOOK: u64 = 1;

/// A configuration, for the streams of all workers.
pub(crate) struct FilterConfig {
    /// The number of its roots.
    pub(crate) number: u32,
    /// What happens to a request after a panic.
    pub(crate) on_fault: OnFault,
}

/// A configuration in this process.
struct Known {
    number: u32,
    name: Vec<u8>,
    text: Vec<u8>,
    namespace: String,
    switches: Switches,
    password: Password,
    metrics: MetricIds,
    scheduler: ConfigScheduler,
}

thread_local! {
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is Envoy's main thread, which has streams if the filter is in a cluster that Envoy itself calls.
pub(crate) fn is_main_thread() -> bool {
    IS_MAIN.get()
}

/// Logs why a configuration is rejected.
pub(crate) fn refuse(why: &str) {
    log(LogLevel::Error, &format!("configuration rejected: {why}"));
}

/// All configurations, the latest last.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FilterConfig {
    /// Builds a configuration in all workers. `None` if it is invalid; the log has the reason.
    pub(crate) fn new(call: &ConfigCall, name: &[u8], text: &[u8]) -> Option<FilterConfig> {
        static COUNT: AtomicU32 = AtomicU32::new(FIRST_ROOT);
        IS_MAIN.set(true);
        slot::create(abi::workers());
        let policy = Reader::new(ModuleKind::Native).policy(text).ok();
        let namespace = policy.as_ref().and_then(|policy| policy.namespace.clone());
        let namespace = namespace.unwrap_or_else(|| diana_worker::default_namespace(name));
        let on_fault = policy.as_ref().map(|policy| policy.on_fault).unwrap_or_default();
        let password = Password::subscribe(policy.as_ref(), call)?;
        if !abi::reports_ends()
            && let Some(rule) = policy.and_then(settled_rule)
        {
            refuse(&format!("{rule}: {NEEDS_ENDS}"));
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed) | FIRST_ROOT;
        let metrics = MetricIds::define(call);
        let config = FilterConfig { number, on_fault };
        let scheduler = call.scheduler();
        let current = switches::read(&namespace);
        if current != Switches::default() {
            log(LogLevel::Warn, &switches::line(&namespace, current));
        }
        let built = Known {
            number,
            name: name.into(),
            text: text.into(),
            namespace,
            switches: current,
            password,
            metrics,
            scheduler,
        };
        // Before it is built, since its first timer may fire in the meantime.
        known().push(built);
        if !slot::all().iter().all(|slot| slot.enter(|state| state.configure(number, name, text))) {
            config.end();
            return None;
        }
        if !abi::only_validates() {
            clock::start();
        }
        metrics::schedule_anew();
        Some(config)
    }

    /// Envoy destroys it, after all of its streams.
    pub(crate) fn end(&self) {
        known().retain(|it| it.number != self.number);
        calls::end(self.number);
        slot::all().iter().for_each(|slot| slot.enter(|state| state.end(self.number)));
        metrics::schedule_anew();
    }

    fn awaits_password(&self) -> bool {
        known().iter().any(|it| it.number == self.number && it.password.is_awaited())
    }

    /// Applies the configuration again if its switches or its password have changed. That is an update by the same document.
    fn look(&self, call: &ConfigCall) {
        let mut known = known();
        let Some(own) = known.iter_mut().find(|it| it.number == self.number) else { return };
        let current = switches::read(&own.namespace);
        let (before, namespace) = (mem::replace(&mut own.switches, current), own.namespace.clone());
        let is_switched = before != current;
        if !own.password.look(call) && !is_switched {
            return;
        }
        let (name, text) = (own.name.clone(), own.text.clone());
        let latest = known.iter().rfind(|it| it.namespace == namespace);
        if is_switched && latest.is_some_and(|it| it.number == self.number) {
            log(LogLevel::Warn, &switches::line(&namespace, current));
        }
        drop(known);
        slot::all().iter().for_each(|slot| {
            slot.enter(|state| state.configure(self.number, &name, &text));
        });
    }

    /// The main thread makes calls and reports metrics by this configuration, or looks at what operators change without an
    /// update.
    pub(crate) fn scheduled(&self, call: &ConfigCall, event: u64) {
        if event == LOOK {
            return self.look(call);
        }
        if self.awaits_password() {
            self.look(call);
        }
        calls::make(self.number, call);
        if !abi::has_config_metrics() {
            return;
        }
        let mut known = known();
        let Some(own) = known.iter_mut().find(|it| it.number == self.number) else { return };
        let has_new = metrics::flush(&mut own.metrics, |kind, id, labels, value| {
            call.change(kind, id, labels, value)
        });
        if has_new {
            // The others change them, too.
            let others = known.iter().filter(|it| it.number != self.number);
            others.for_each(|it| it.scheduler.commit(WORK));
        }
    }
}

/// The number, the name and the text of each configuration.
pub(crate) fn all() -> Vec<(u32, Vec<u8>, Vec<u8>)> {
    known().iter().map(|it| (it.number, it.name.clone(), it.text.clone())).collect()
}

/// The switches for a configuration.
pub(crate) fn switches(number: u32) -> Switches {
    let known = known();
    known.iter().find(|it| it.number == number).map(|it| it.switches).unwrap_or_default()
}

/// The password of Redis in a secret of Envoy.
pub(crate) fn password(number: u32) -> Option<String> {
    let known = known();
    known.iter().find(|it| it.number == number).and_then(|it| it.password.value())
}

/// The name of a rule that is settled by the response of the upstream, if a policy has one.
fn settled_rule(policy: Policy) -> Option<String> {
    let mut rules = policy.limits.into_iter().flat_map(|limit| limit.rules);
    let is_settled = |it: &Settling| it.response_cost.is_some() || it.count.is_some();
    rules.find(|rule| rule.settling.as_deref().is_some_and(is_settled)).map(|rule| rule.name)
}

/// Makes the main thread call a configuration. Returns false if it has ended.
pub(crate) fn schedule(number: u32) -> bool {
    let known = known();
    let found = known.iter().find(|it| it.number == number);
    found.is_some_and(|it| {
        it.scheduler.commit(WORK);
        true
    })
}

/// Makes the main thread look at what operators change without an update.
pub(crate) fn schedule_look() {
    known().iter().for_each(|it| it.scheduler.commit(LOOK));
}

/// Makes the main thread report metrics.
pub(crate) fn schedule_metrics() {
    if let Some(latest) = known().last() {
        latest.scheduler.commit(WORK);
    }
}

/// Reports metrics by a stream of a configuration, where Envoy cannot without one.
#[cold]
pub(crate) fn flush_by(number: u32, call: &Call<'_>) {
    let mut known = known();
    if let Some(own) = known.iter_mut().find(|it| it.number == number) {
        let change = |kind, id, labels: &metrics::Labels<'_>, value| {
            call.change(kind, id, labels, value);
        };
        metrics::flush(&mut own.metrics, change);
    }
}
