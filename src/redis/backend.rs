//! Redis as the authority of a limiter: its client, and what its stores share.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::bans::RedisBans;
use super::client::{Client, Completion};
use super::handle::Handle;
use super::question_result::QuestionResult;
use super::store::RedisStore;
use super::target::Target;
use diana_policy::Ban;
use diana_policy::key::{Key, Seed};
use diana_policy::port::{Answer, Callout};
use diana_policy::redis::OnFailure;
use diana_policy::time::{Micros, Now};
use diana_store::backend::{Backend, BackendCounts, BackendResult, BanAuthority};
use diana_store::stores::Stores;
use diana_store::{Account, CounterSpec, Store};

/// The Redis of one limiter.
pub struct RedisBackend {
    client: Client,
    handle: Rc<RefCell<Handle>>,
    /// The questions of each request or order that have no result yet.
    unanswered: BTreeMap<u64, Vec<usize>>,
}

impl RedisBackend {
    /// A Redis that this client reaches. `on_failure` applies while it is unavailable.
    #[must_use]
    pub fn new(client: Client, on_failure: OnFailure) -> RedisBackend {
        let mut handle = Handle::new(on_failure, client.shards());
        client.update_handle(&mut handle);
        RedisBackend { client, handle: Rc::new(RefCell::new(handle)), unanswered: BTreeMap::new() }
    }

    /// Stores the results. Returns the requests, orders and operations that are complete.
    fn store_results(&mut self, completed: Vec<Completion>) -> Vec<BackendResult> {
        completed.into_iter().filter_map(|completion| self.store_result(completion)).collect()
    }

    fn store_result(&mut self, completion: Completion) -> Option<BackendResult> {
        let mut handle = self.handle.borrow_mut();
        match completion {
            Completion::Request(id, question, result) => {
                let questions = self.unanswered.get_mut(&id)?;
                let at = questions.iter().position(|number| *number == question)?;
                questions.swap_remove(at);
                handle.store_result(question, result);
                if !questions.is_empty() {
                    return None;
                }
                self.unanswered.remove(&id);
                Some(BackendResult::Request(id))
            }
            Completion::Operation(target, (key, plan), reply) => {
                let result = match reply {
                    Some((reply, sent)) => {
                        QuestionResult::Decided { reply, wait: None, sent, at: sent.mono }
                    }
                    None => QuestionResult::Degraded,
                };
                let question = handle.store_new_result(result);
                let (rule, is_ban) = match target {
                    Target::Rule(rule) => (rule, false),
                    Target::Ban(rule) => (rule, true),
                };
                let account = Account { key, plan };
                Some(BackendResult::Background { rule, is_ban, account, question })
            }
        }
    }
}

impl Backend for RedisBackend {
    fn open(
        &mut self,
        rule: usize,
        spec: CounterSpec,
        stores: &mut Stores<'_>,
    ) -> Option<Box<dyn Store>> {
        let store = RedisStore::new(spec, rule, self.handle.clone(), stores).ok()?;
        Some(Box::new(store))
    }

    fn open_bans(
        &mut self,
        rule: usize,
        fingerprint: u64,
        ban: &Ban,
        spec: &CounterSpec,
    ) -> Box<dyn BanAuthority> {
        Box::new(RedisBans::new(rule, fingerprint, ban, spec, self.handle.clone()))
    }

    fn seed(&self) -> Seed {
        self.client.seed()
    }

    fn shard(&self, caller: Key) -> u16 {
        self.client.shards().of(caller).number()
    }

    fn is_degraded(&self, caller: Key) -> bool {
        self.handle.borrow().is_degraded(caller)
    }

    fn unavailable_shards(&self) -> usize {
        self.handle.borrow().unavailable_shards()
    }

    fn gateways(&self) -> u64 {
        self.handle.borrow().gateways
    }

    fn has_operations(&self) -> bool {
        self.handle.borrow().has_operations()
    }

    fn send(&mut self, id: u64, delay: Micros, since: Micros) {
        let mut handle = self.handle.borrow_mut();
        handle.beats = true;
        let questions = handle.take_asked();
        let numbers = questions.iter().map(|(number, _)| *number);
        self.unanswered.entry(id).or_default().extend(numbers);
        self.client.ask(id, delay, questions, since, &mut handle);
    }

    fn discard(&mut self) {
        self.handle.borrow_mut().take_asked();
    }

    fn probe(&mut self) {
        let mut handle = self.handle.borrow_mut();
        // A worker that does not use Redis does not read the shared record of unavailable shards,
        // so its copy may be old.
        if !std::mem::replace(&mut handle.in_use, true) {
            self.client.refresh(&mut handle);
        }
    }

    fn stop_probing(&mut self) {
        let mut handle = self.handle.borrow_mut();
        (handle.in_use, handle.beats) = (false, false);
    }

    fn next(&self, now: Micros) -> Option<Micros> {
        self.client.next(now, &self.handle.borrow())
    }

    fn work(&mut self, now: Now, callout: &dyn Callout) -> Vec<BackendResult> {
        let completed = self.client.work(now, callout, &mut self.handle.borrow_mut());
        self.store_results(completed)
    }

    fn on_reply(
        &mut self,
        token: u32,
        answer: &Answer<'_>,
        now: Now,
    ) -> Option<Vec<BackendResult>> {
        let completed = self.client.answer(token, answer, now, &mut self.handle.borrow_mut());
        completed.map(|completed| self.store_results(completed))
    }

    fn on_root_ended(&mut self, root: u32) -> Vec<BackendResult> {
        let completed = self.client.on_root_ended(root, &mut self.handle.borrow_mut());
        self.store_results(completed)
    }

    fn inherit(&mut self, other: &mut dyn Backend) -> bool {
        let other: &mut dyn Any = other;
        let Some(other) = other.downcast_mut::<RedisBackend>() else { return false };
        self.client.inherit(
            &mut self.handle.borrow_mut(),
            &other.client,
            &mut other.handle.borrow_mut(),
        )
    }

    fn take_counts(&mut self) -> BackendCounts {
        let unsettled = std::mem::take(&mut self.handle.borrow_mut().ledgers.dropped);
        BackendCounts { unsettled, ..std::mem::take(&mut self.client.counts) }
    }

    fn take_log_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.client.log_lines)
    }
}
