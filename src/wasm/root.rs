//! One configuration of the plugin in one VM.

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{ContextType, LogLevel};

use super::gate::Gate;
use super::http::Stream;
use super::news::{self, News};
use super::remote;
use super::stats::HostMetrics;
use super::{abi, fleet, gates, timer};
use diana_core::fleet::desk::Way;
use diana_core::policy::Policy;
use diana_core::port::{Metrics, Property};
use diana_worker::remote::{Outcome, Poller};

pub(super) struct Root {
    /// The host's number of this root.
    id: u32,
    namespace: Rc<str>,
    gate: Option<Rc<Gate>>,
    /// Asks the configuration centre, if there is one.
    poller: Option<Box<Poller>>,
    /// How Redis is reached, if there is one.
    way: Option<Way>,
}

impl Context for Root {
    fn on_http_call_response(&mut self, token: u32, headers: usize, size: usize, _: usize) {
        if !gates::answer(self.id, token, headers, size)
            && let Some(poller) = &mut self.poller
        {
            let outcome = remote::answer(poller, self.id, token, headers, size);
            self.carry_out(outcome);
        }
        gates::settle(self.id);
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Some(poller) = &self.poller {
            self.count_in_force(poller.retire());
        }
        self.gate.take().into_iter().for_each(|gate| gate.close());
        gates::end(self.id);
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        let text = abi::buffer(abi::PLUGIN_CONFIGURATION, size).unwrap_or_default();
        let root_id = abi::property(Property::new(&["plugin_root_id"]).encoded());
        let root_id = sanitise(&root_id.unwrap_or_default());
        let policy = diana_config::parse(&text).map_err(|problems| problems.to_string());
        match policy.and_then(|policy| self.configure(&root_id, &text, policy)) {
            Ok(()) => true,
            Err(problems) => {
                HostMetrics.count(&format!("diana.{root_id}.config.rejected"), 1);
                let text = format!("configuration rejected:\n{problems}");
                text.lines().for_each(|line| abi::log(LogLevel::Error as u32, line));
                false
            }
        }
    }

    fn on_tick(&mut self) {
        if let Some(poller) = &mut self.poller {
            let outcome = remote::tick(poller, self.id, abi::monotonic());
            timer::own(self.id, poller.next());
            self.carry_out(outcome);
        }
        gates::tick(self.id);
    }

    fn create_http_context(&self, context_id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream::new(self.gate.clone()?, context_id)))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

impl Root {
    pub(super) fn new(id: u32) -> Root {
        Root { id, namespace: "".into(), gate: None, poller: None, way: None }
    }

    /// Puts a configuration into force, or the rules that a centre gave for it before.
    fn configure(&mut self, root_id: &str, text: &[u8], policy: Policy) -> Result<(), String> {
        let namespace = policy.namespace.as_deref().unwrap_or(root_id);
        let mut poller = remote::poller(&policy, namespace).transpose()?;
        self.way = fleet::way(&policy)?;
        self.namespace = namespace.into();
        let last_good = poller.as_mut().and_then(remote::last_good);
        let rules = last_good.as_ref().unwrap_or(&policy);
        if let Some(news) = news::of(&self.namespace, text, rules) {
            tell(&self.namespace, &policy, &news);
        }
        timer::begin(self.id);
        if poller.is_some() {
            timer::own(self.id, abi::monotonic());
        }
        self.poller = poller.map(Box::new);
        let replaced = self.replace(last_good.unwrap_or(policy));
        gates::settle(self.id);
        replaced
    }

    fn replace(&mut self, policy: Policy) -> Result<(), String> {
        let (namespace, way) = (self.namespace.clone(), self.way.clone());
        let gate = Rc::new(Gate::new(self.id, namespace, policy, way)?);
        gates::join(&gate);
        // After the new one is made, so that it goes on with what the old one counted.
        if let Some(old) = self.gate.replace(gate) {
            old.close();
            drop(old);
            gates::sweep();
        }
        Ok(())
    }

    /// Does what the poller says is to be done.
    fn carry_out(&mut self, outcome: Outcome) {
        let count = |what| HostMetrics.count(&format!("diana.{}.remote.{what}", self.namespace), 1);
        outcome.count.into_iter().for_each(count);
        self.count_in_force(outcome.in_force);
        outcome.news.iter().for_each(|line| abi::log(LogLevel::Info as u32, line));
        outcome.troubles.iter().for_each(|line| abi::log(LogLevel::Warn as u32, line));
        if let Some(policy) = outcome.policy {
            if outcome.is_first {
                tell_anew(&news::anew(&self.namespace, &policy));
            }
            if let Err(why) = self.replace(policy) {
                return abi::log(LogLevel::Error as u32, &why);
            }
            HostMetrics.count(&format!("diana.{}.remote.applied", self.namespace), 1);
        }
    }

    fn count_in_force(&self, change: i64) {
        if change != 0 {
            let name = format!("diana.{}.remote.in_force", self.namespace);
            HostMetrics.gauge(&name, change);
        }
    }
}

/// Counts a configuration and logs what there is to say about it.
fn tell(namespace: &str, policy: &Policy, news: &News) {
    HostMetrics.count(&format!("diana.{namespace}.config.accepted"), 1);
    for line in &policy.warnings {
        abi::log(LogLevel::Warn as u32, line);
    }
    tell_anew(&news.anew);
    abi::log(LogLevel::Info as u32, &diana_core::sizing::summary(policy));
}

fn tell_anew(names: &[String]) {
    const NAMED: usize = 20;
    if names.is_empty() {
        return;
    }
    let (named, more) = (names.get(..NAMED).unwrap_or(names), names.len().saturating_sub(NAMED));
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let line = format!("these rules start anew, with nothing used: {}{more}", named.join(", "));
    abi::log(LogLevel::Info as u32, &line);
}

/// A name that metrics and shared data can bear.
fn sanitise(root_id: &[u8]) -> String {
    let name: String = root_id
        .iter()
        .map(
            |&byte| {
                if byte.is_ascii_alphanumeric() || byte == b'-' { char::from(byte) } else { '_' }
            },
        )
        .collect();
    if name.is_empty() { "diana".into() } else { name }
}
