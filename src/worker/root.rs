//! A root: one plugin configuration in one worker, with its rules and the configuration server that
//! may replace them.

use std::rc::Rc;

use super::changes::{self, ConfigChanges};
use super::host::{Host, Level};
use super::instance::Instance;
use super::operator;
use super::redis::RedisAccess;
use super::remote::{Access, PollOutcome, Poller};
use super::step::Steps;
use super::without_document::{self, WithoutDocument};
use super::worker::Worker;
use diana_config::Reader;
use diana_policy::port::Answer;
use diana_policy::{Metric, Policy, Scope, names};

/// Logged once by a process that counts rules in its own memory.
const FIRST: &str = "this is the first configuration of this process, so usage that is counted per gateway starts from zero";

/// A root of the host. Call [`Root::end`] when it ends.
#[derive(Default)]
pub struct Root {
    namespace: Rc<str>,
    instance: Option<Rc<Instance>>,
    /// Polls the configuration server, if there is one.
    poller: Option<Box<Poller>>,
    /// The number of gateways that this server reports. 0 if it is not known.
    gateways: u64,
    /// The access to Redis, if there is one.
    redis: Option<RedisAccess>,
    /// While it has no rules, since no document was ever good.
    without_document: Option<Box<WithoutDocument>>,
}

impl Root {
    /// The instance that decides about its requests, once it is configured.
    #[must_use]
    #[inline(always)]
    pub fn instance(&self) -> Option<&Rc<Instance>> {
        self.instance.as_ref()
    }

    /// Applies a configuration of a root with this name. Returns false if it is invalid, and logs
    /// the reason.
    pub fn configure(
        &mut self,
        text: &[u8],
        root_id: &[u8],
        worker: &Worker,
        host: &dyn Host,
    ) -> bool {
        let root_id = default_namespace(root_id);
        let policy =
            Reader::new(host.module()).policy(text).map_err(|problems| problems.to_string());
        let applied = policy.and_then(|policy| self.apply(&root_id, text, policy, worker, host));
        self.end_without_document(host);
        match applied {
            Ok(()) => {
                without_document::record_good(&root_id, &*host.data());
                true
            }
            Err(problems) => {
                host.add(Metric::ConfigRejected, &[&root_id], 1);
                match WithoutDocument::begin(&root_id, text, &problems, host) {
                    Some(state) => {
                        worker.timers.begin(host.caller());
                        worker.timers.schedule_own_work(host.caller(), state.next());
                        self.without_document = Some(Box::new(state));
                        worker.schedule(host);
                        true
                    }
                    None => {
                        let text = format!("configuration rejected:\n{problems}");
                        text.lines().for_each(|line| host.log(Level::Error, line));
                        false
                    }
                }
            }
        }
    }

    /// Does the work that is due. Call it when the timer of the root fires.
    pub fn tick(&mut self, worker: &Worker, host: &dyn Host) -> Steps {
        if let Some(state) = &mut self.without_document
            && state.next() <= host.monotonic()
        {
            state.report(host);
            worker.timers.schedule_own_work(host.caller(), state.next());
        }
        if let Some(poller) = &mut self.poller {
            let data = host.data();
            let outcome =
                poller.tick(&Access { data: &*data, callout: host, now: host.monotonic() });
            worker.timers.schedule_own_work(host.caller(), poller.next());
            self.apply_outcome(outcome, worker, host);
        }
        worker.tick(host)
    }

    /// Processes the reply to a call.
    pub fn on_reply(
        &mut self,
        token: u32,
        answer: &Answer<'_>,
        worker: &Worker,
        host: &dyn Host,
    ) -> Steps {
        let steps = worker.on_reply(token, answer, host);
        if steps.is_none()
            && let Some(poller) = &mut self.poller
        {
            let data = host.data();
            let access = Access { data: &*data, callout: host, now: host.monotonic() };
            let outcome = poller.on_reply(token, answer, &access);
            self.apply_outcome(outcome, worker, host);
        }
        worker.schedule(host);
        steps.unwrap_or_default()
    }

    /// The host deletes the root.
    pub fn end(&mut self, worker: &Worker, host: &dyn Host) {
        self.retire_poller(host);
        self.end_without_document(host);
        self.instance.take().into_iter().for_each(|instance| instance.close(host));
        worker.end(host);
    }

    fn retire_poller(&mut self, host: &dyn Host) {
        if let Some(poller) = self.poller.take() {
            self.count_in_force(poller.retire(&*host.data()), host);
        }
    }

    fn end_without_document(&mut self, host: &dyn Host) {
        if let Some(mut state) = self.without_document.take() {
            state.end(host);
        }
    }

    /// Applies a policy that was read from `text`, or the rules that the configuration server last
    /// returned for it.
    ///
    /// # Errors
    /// If a rule cannot be built, or a variable of the environment is missing.
    pub fn apply(
        &mut self,
        root_id: &str,
        text: &[u8],
        policy: Policy,
        worker: &Worker,
        host: &dyn Host,
    ) -> Result<(), String> {
        let namespace = policy.namespace.as_deref().unwrap_or(root_id);
        let mut poller = poller(&policy, namespace, host).transpose()?;
        self.redis = RedisAccess::of(&policy, root_id, host.environment());
        self.namespace = namespace.into();
        let data = host.data();
        let last_good = poller.as_mut().and_then(|poller| poller.last_good(&*data));
        self.gateways = poller.as_ref().map_or(0, |poller| poller.gateways(&*data));
        let rules = last_good.as_ref().unwrap_or(&policy);
        if let Some(changes) =
            changes::detect(&self.namespace, text, rules, &*data, host.monotonic())
        {
            log_configuration(&self.namespace, &policy, &changes, host);
            if changes.is_first && counts_in_gateway(rules) {
                host.log(Level::Info, FIRST);
            }
            operator::log_unusable_tokens(&policy, host);
            let missing = self.redis.as_ref().and_then(|redis| redis.missing.as_ref());
            missing.into_iter().for_each(|line| host.log(Level::Error, line));
        }
        worker.timers.begin(host.caller());
        if poller.is_some() {
            worker.timers.schedule_own_work(host.caller(), host.monotonic());
        }
        self.retire_poller(host);
        self.poller = poller.map(Box::new);
        let replaced = self.replace(last_good.unwrap_or(policy), worker, host);
        if replaced.is_ok() {
            self.poller.iter_mut().for_each(|poller| poller.apply());
        }
        worker.schedule(host);
        replaced
    }

    fn replace(
        &mut self,
        mut policy: Policy,
        worker: &Worker,
        host: &dyn Host,
    ) -> Result<(), String> {
        host.switches().change(&mut policy);
        let (namespace, redis) = (self.namespace.clone(), self.redis.clone());
        let instance = worker.build(namespace, policy, redis, host)?;
        // Only after the new instance is built, so that it takes over the counts of the old one.
        if let Some(old) = self.instance.replace(instance) {
            old.close(host);
            drop(old);
            worker.sweep(host);
        }
        self.share_limits();
        Ok(())
    }

    /// The instance shares limits by the known number of gateways.
    fn share_limits(&self) {
        if let Some(instance) = self.instance.as_ref().filter(|_| self.gateways > 0) {
            instance.set_gateways(self.gateways);
        }
    }

    /// Applies the results of a poll.
    fn apply_outcome(&mut self, outcome: PollOutcome, worker: &Worker, host: &dyn Host) {
        let namespace = self.namespace.clone();
        let count = |metric| host.add(metric, &[&namespace], 1);
        outcome.count.into_iter().for_each(count);
        self.count_in_force(outcome.in_force, host);
        if outcome.gateways > 0 {
            self.gateways = outcome.gateways;
            self.share_limits();
        }
        outcome.successes.iter().for_each(|line| host.log(Level::Info, line));
        outcome.failures.iter().for_each(|line| host.log(Level::Warn, line));
        if let Some(policy) = outcome.policy {
            if outcome.is_first {
                log_rules(&changes::compare(&self.namespace, &policy, &*host.data()), host);
            }
            if let Err(why) = self.replace(policy, worker, host) {
                return host.log(Level::Error, &why);
            }
            self.poller.iter_mut().for_each(|poller| poller.apply());
            count(Metric::RemoteApplied);
        }
    }

    fn count_in_force(&self, change: i64, host: &dyn Host) {
        if change != 0 {
            host.add(Metric::RemoteInForce, &[&self.namespace], change);
        }
    }
}

/// The poller, if the configuration has a configuration server.
fn poller(policy: &Policy, namespace: &str, host: &dyn Host) -> Option<Result<Poller, String>> {
    let poller = |remote| {
        let id = (host.random() as u64, host.monotonic());
        Poller::new(remote, policy.own(), namespace, host.environment(), id)
    };
    policy.remote.clone().map(poller)
}

/// Counts an accepted configuration, and logs its advice and changes.
fn log_configuration(namespace: &str, policy: &Policy, changes: &ConfigChanges, host: &dyn Host) {
    host.add(Metric::ConfigAccepted, &[namespace], 1);
    for line in &policy.warnings {
        host.log(Level::Warn, line);
    }
    log_rules(changes, host);
    host.log(Level::Info, &diana_limiter::sizing::summary(policy));
}

/// Returns true if a rule counts the callers of all workers in this process.
fn counts_in_gateway(policy: &Policy) -> bool {
    policy.rules().any(|rule| match rule.scope {
        Scope::Local => false,
        Scope::Gateway => true,
        Scope::Global => policy.redis.is_none(),
    })
}

/// Logs the rules that a configuration adds and removes.
fn log_rules(changes: &ConfigChanges, host: &dyn Host) {
    for (news, rules) in [
        ("these rules start with no usage", &changes.new_rules),
        ("these rules have ended", &changes.ended_rules),
    ] {
        if !rules.is_empty() {
            host.log(Level::Info, &format!("{news}: {}", names::listed(rules)));
        }
    }
}

/// The namespace of a document that names none: the root id, with underscores in place of
/// characters that are not valid in metrics and shared data.
#[must_use]
pub fn default_namespace(root_id: &[u8]) -> String {
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
