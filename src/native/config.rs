//! Configurations of the filter, from Envoy's main thread.

use std::cell::Cell;
use std::mem;

use diana_config::Reader;
use diana_policy::{ModuleKind, OnFault, Policy, Settling, Switches};

use crate::abi::{self, ConfigCall, LogLevel, log};
use crate::configurations::{Configuration, LOOK, WORK};
use crate::module::Module;
use crate::password::Password;
use crate::{switches, timers};

/// Why a rule is refused.
const NEEDS_ENDS: &str = "`count` and `cost: {response: …}` need Envoy 1.39 or later in the native module, since \
                          this Envoy does not report how a stream ended";

/// A configuration, for the streams of all workers.
pub(crate) struct FilterConfig {
    pub(crate) module: &'static Module,
    /// The number of its roots.
    pub(crate) number: u32,
    /// What happens to a request after a panic.
    pub(crate) on_fault: OnFault,
}

thread_local! {
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is Envoy's main thread, which has streams if the filter is in a cluster that Envoy itself calls.
pub(crate) fn is_main_thread() -> bool {
    IS_MAIN.get()
}

/// Logs why a configuration is rejected.
fn refuse(why: &str) {
    log(LogLevel::Error, &format!("configuration rejected: {why}"));
}

impl FilterConfig {
    /// Builds a configuration in all workers. `None` if it is invalid; the log has the reason.
    pub(crate) fn new(
        module: &'static Module,
        call: &ConfigCall,
        name: &[u8],
        text: &[u8],
    ) -> Option<FilterConfig> {
        IS_MAIN.set(true);
        module.create_cells(abi::workers());
        let policy = Reader::new(ModuleKind::Native).policy(text).ok();
        let namespace = policy.as_ref().and_then(|policy| policy.namespace.clone());
        let namespace = namespace.unwrap_or_else(|| diana_worker::default_namespace(name));
        let on_fault = policy.as_ref().map(|policy| policy.on_fault).unwrap_or_default();
        let password =
            Password::subscribe(policy.as_ref(), call).map_err(|why| refuse(&why)).ok()?;
        if !abi::reports_ends()
            && let Some(rule) = policy.and_then(settled_rule)
        {
            refuse(&format!("{rule}: {NEEDS_ENDS}"));
            return None;
        }
        let number = module.configurations.new_number();
        module.metrics.define(number, call);
        let config = FilterConfig { module, number, on_fault };
        let scheduler = call.scheduler();
        let current = switches::read(&namespace);
        if current != Switches::default() {
            log(LogLevel::Warn, &switches::line(&namespace, current));
        }
        let built = Configuration {
            number,
            name: name.into(),
            text: text.into(),
            namespace,
            switches: current,
            password,
            scheduler,
        };
        // Before it is built, since its first timer may fire in the meantime.
        module.configurations.known().push(built);
        let cells = module.cells();
        if !cells.iter().all(|cell| cell.enter(|state| state.configure(number, name, text))) {
            config.end();
            return None;
        }
        if !abi::only_validates() {
            timers::start(module);
        }
        module.metrics.schedule_anew(&module.configurations);
        Some(config)
    }

    /// Envoy destroys it, after all of its streams.
    pub(crate) fn end(&self) {
        let Module { configurations, calls, metrics, .. } = self.module;
        configurations.known().retain(|it| it.number != self.number);
        calls.end(self.number);
        self.module.cells().iter().for_each(|cell| cell.enter(|state| state.end(self.number)));
        metrics.end(self.number, configurations);
    }

    fn awaits_password(&self) -> bool {
        let known = self.module.configurations.known();
        known.iter().any(|it| it.number == self.number && it.password.is_awaited())
    }

    /// Applies the configuration again if its switches or its password have changed. That is an update by the same document.
    fn look(&self, call: &ConfigCall) {
        let mut known = self.module.configurations.known();
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
        self.module.cells().iter().for_each(|cell| {
            cell.enter(|state| state.configure(self.number, &name, &text));
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
        let Module { configurations, calls, metrics, .. } = self.module;
        for (caller, reply) in calls.make(self.number, call) {
            self.module.deliver(caller, reply);
        }
        if !abi::has_config_metrics() {
            return;
        }
        let has_new = metrics
            .flush(self.number, |kind, id, labels, value| call.change(kind, id, labels, value));
        if has_new {
            // The others change them, too.
            let (known, own) = (configurations.known(), self.number);
            known.iter().filter(|it| it.number != own).for_each(|it| it.scheduler.commit(WORK));
        }
    }
}

/// The name of a rule that is settled by the response of the upstream, if a policy has one.
fn settled_rule(policy: Policy) -> Option<String> {
    let mut rules = policy.limits.into_iter().flat_map(|limit| limit.rules);
    let is_settled = |it: &Settling| it.response_cost.is_some() || it.count.is_some();
    rules.find(|rule| rule.settling.as_deref().is_some_and(is_settled)).map(|rule| rule.name)
}
