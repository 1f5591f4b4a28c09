//! Redis as the authority of a limiter: its client, and what its stores share.

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

/// The connection of an instance to Redis. Its worker has one reference to it, and its limiter
/// another one, as [`Backend`].
#[derive(Clone)]
pub struct RedisConnection {
    client: Rc<RefCell<Client>>,
    handle: Rc<RefCell<Handle>>,
}

/// Redis as the authority of a limiter.
struct RedisBackend {
    client: Rc<RefCell<Client>>,
    handle: Rc<RefCell<Handle>>,
    /// The questions of each request or order that have no result yet.
    unanswered: BTreeMap<u64, Vec<usize>>,
}

impl RedisConnection {
    /// A Redis that this client reaches. `on_failure` applies while it is unavailable.
    #[must_use]
    pub fn new(client: Client, on_failure: OnFailure) -> RedisConnection {
        let mut handle = Handle::new(on_failure, client.shards());
        client.update_handle(&mut handle);
        RedisConnection {
            client: Rc::new(RefCell::new(client)),
            handle: Rc::new(RefCell::new(handle)),
        }
    }

    /// The authority of a limiter.
    #[must_use]
    pub fn backend(&self) -> Box<dyn Backend> {
        let RedisConnection { client, handle } = self.clone();
        Box::new(RedisBackend { client, handle, unanswered: BTreeMap::new() })
    }

    /// Reads what the stores know of Redis. `None` during a call to it.
    fn read<T>(&self, read: impl FnOnce(&Handle) -> T) -> Option<T> {
        self.handle.try_borrow().ok().map(|handle| read(&handle))
    }

    /// The number of unavailable shards.
    #[must_use]
    pub fn unavailable_shards(&self) -> usize {
        self.read(Handle::unavailable_shards).unwrap_or(0)
    }

    /// Returns true if a caller's shard is unavailable, so that the gateway enforces its share of
    /// the limit.
    #[must_use]
    pub fn is_degraded(&self, caller: Key) -> bool {
        self.read(|handle| handle.is_degraded(caller)).unwrap_or(false)
    }

    /// The number of gateways that count there, as last reported; at least one.
    #[must_use]
    pub fn gateways(&self) -> u64 {
        self.read(|handle| handle.gateways).unwrap_or(1)
    }

    /// Returns true if there is anything to send that no request waits for, or a shard to probe.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let has_work = |handle: &Handle| handle.has_operations() || handle.unavailable_shards() > 0;
        self.read(has_work).unwrap_or(false)
    }

    /// The time of the next work.
    #[must_use]
    pub fn next(&self, now: Micros) -> Option<Micros> {
        let client = self.client.try_borrow().ok()?;
        self.read(|handle| client.next(now, handle)).flatten()
    }

    /// Stops probing, and telling Redis that the gateway is alive, until a request needs it again.
    pub fn stop_probing(&self) {
        if let Ok(mut handle) = self.handle.try_borrow_mut() {
            (handle.in_use, handle.beats) = (false, false);
        }
    }

    /// Takes over the unsettled charges of a connection that has ended. Returns false if that one
    /// used another Redis.
    #[must_use]
    pub fn inherit(&self, other: &RedisConnection) -> bool {
        let (Ok(own), Ok(left)) = (self.client.try_borrow(), other.client.try_borrow()) else {
            return false;
        };
        let handles = (self.handle.try_borrow_mut(), other.handle.try_borrow_mut());
        let (Ok(mut handle), Ok(mut other)) = handles else { return false };
        own.inherit(&mut handle, &left, &mut other)
    }

    /// The lines for the log since the last call.
    #[must_use]
    pub fn take_log_lines(&self) -> Vec<String> {
        let client = self.client.try_borrow_mut();
        client.map(|mut client| std::mem::take(&mut client.log_lines)).unwrap_or_default()
    }
}

impl RedisBackend {
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
        self.client.borrow().seed()
    }

    fn shard(&self, caller: Key) -> u16 {
        self.client.borrow().shards().of(caller).number()
    }

    fn unavailable_shards(&self) -> usize {
        self.handle.borrow().unavailable_shards()
    }

    fn send(&mut self, id: u64, delay: Micros, since: Micros) {
        let mut handle = self.handle.borrow_mut();
        handle.beats = true;
        let questions = handle.take_asked();
        let numbers = questions.iter().map(|(number, _)| *number);
        self.unanswered.entry(id).or_default().extend(numbers);
        self.client.borrow_mut().ask(id, delay, questions, since, &mut handle);
    }

    fn discard(&mut self) {
        self.handle.borrow_mut().take_asked();
    }

    fn probe(&mut self) {
        let mut handle = self.handle.borrow_mut();
        // A worker that does not use Redis does not read the shared record of unavailable shards,
        // so its copy may be old.
        if !std::mem::replace(&mut handle.in_use, true) {
            self.client.borrow_mut().refresh(&mut handle);
        }
    }

    fn work(&mut self, now: Now, callout: &dyn Callout) -> Vec<BackendResult> {
        let completed = self.client.borrow_mut().work(now, callout, &mut self.handle.borrow_mut());
        self.store_results(completed)
    }

    fn on_reply(
        &mut self,
        token: u32,
        answer: &Answer<'_>,
        now: Now,
    ) -> Option<Vec<BackendResult>> {
        let mut client = self.client.borrow_mut();
        let completed = client.answer(token, answer, now, &mut self.handle.borrow_mut());
        drop(client);
        completed.map(|completed| self.store_results(completed))
    }

    fn on_root_ended(&mut self, root: u32) -> Vec<BackendResult> {
        let completed = self.client.borrow_mut().on_root_ended(root, &mut self.handle.borrow_mut());
        self.store_results(completed)
    }

    fn take_counts(&mut self) -> BackendCounts {
        let unsettled = std::mem::take(&mut self.handle.borrow_mut().ledgers.dropped);
        BackendCounts { unsettled, ..std::mem::take(&mut self.client.borrow_mut().counts) }
    }
}
