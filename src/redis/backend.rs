//! Redis as the authority of a limiter: its client, and what its stores share.

use std::cell::RefCell;
use std::rc::Rc;

use super::bans::RedisBans;
use super::client::Client;
use super::outbox::Outbox;
use super::store::RedisStore;
use diana_policy::Ban;
use diana_policy::key::{Key, Seed};
use diana_policy::port::{Answer, Callout};
use diana_policy::redis::OnFailure;
use diana_policy::time::{Micros, Now};
use diana_store::backend::{Backend, BackendCounts, BanAuthority, Receiver};
use diana_store::question::Question;
use diana_store::replies::Replies;
use diana_store::stores::Stores;
use diana_store::{CounterSpec, Store};

/// The connection of an instance to Redis. Its worker has one reference to it, and its limiter
/// another one, as [`Backend`].
#[derive(Clone)]
pub struct RedisConnection {
    client: Rc<RefCell<Client>>,
    outbox: Rc<RefCell<Outbox>>,
}

impl RedisConnection {
    /// A Redis that this client reaches. `on_failure` applies while it is unavailable.
    #[must_use]
    pub fn new(client: Client, on_failure: OnFailure) -> RedisConnection {
        let mut outbox = Outbox::new(on_failure, client.shards());
        client.update_outbox(&mut outbox);
        RedisConnection {
            client: Rc::new(RefCell::new(client)),
            outbox: Rc::new(RefCell::new(outbox)),
        }
    }

    /// Makes the calls that are due. Then the backend has the results of questions without a reply
    /// in time, too.
    pub fn work(&self, now: Now, callout: &dyn Callout) {
        self.client.borrow_mut().work(now, callout, &mut self.outbox.borrow_mut());
    }

    /// Takes the reply to a call. Returns false if another connection made the call. The next
    /// [`RedisConnection::work`] sends questions that follow from the reply.
    #[must_use]
    pub fn on_reply(&self, token: u32, answer: &Answer<'_>, now: Now) -> bool {
        self.client.borrow_mut().answer(token, answer, now, &mut self.outbox.borrow_mut())
    }

    /// Drops the calls of a root that has ended: their replies will not come.
    pub fn on_root_ended(&self, root: u32) {
        self.client.borrow_mut().on_root_ended(root, &mut self.outbox.borrow_mut());
    }

    /// Reads what the stores know of Redis. `None` during a call to it.
    fn read<T>(&self, read: impl FnOnce(&Outbox) -> T) -> Option<T> {
        self.outbox.try_borrow().ok().map(|outbox| read(&outbox))
    }

    /// Returns true if a caller's shard is unavailable, so that the gateway enforces its share of
    /// the limit.
    #[must_use]
    pub fn is_degraded(&self, caller: Key) -> bool {
        self.read(|outbox| outbox.is_degraded(caller)).unwrap_or(false)
    }

    /// The number of gateways that count there, as last reported; at least one.
    #[must_use]
    pub fn gateways(&self) -> u64 {
        self.read(|outbox| outbox.gateways).unwrap_or(1)
    }

    /// Assumes this number of gateways at least.
    pub fn set_least_gateways(&self, gateways: u64) {
        let (client, outbox) = (self.client.try_borrow_mut(), self.outbox.try_borrow_mut());
        if let (Ok(mut client), Ok(mut outbox)) = (client, outbox) {
            client.least_gateways = gateways;
            client.update_outbox(&mut outbox);
        }
    }

    /// Returns true if there is anything to send that no request waits for, or a shard to probe.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let has_work = |outbox: &Outbox| outbox.has_operations() || outbox.unavailable_shards() > 0;
        self.read(has_work).unwrap_or(false)
    }

    /// The time of the next work.
    #[must_use]
    pub fn next(&self, now: Micros) -> Option<Micros> {
        let client = self.client.try_borrow().ok()?;
        self.read(|outbox| client.next(now, outbox)).flatten()
    }

    /// Stops probing, and telling Redis that the gateway is alive, until a request needs it again.
    pub fn stop_probing(&self) {
        if let Ok(mut outbox) = self.outbox.try_borrow_mut() {
            (outbox.in_use, outbox.beats) = (false, false);
        }
    }

    /// Takes over the unsettled charges of a connection that has ended. Returns false if that one
    /// used another Redis.
    #[must_use]
    pub fn inherit(&self, other: &RedisConnection) -> bool {
        let (Ok(own), Ok(left)) = (self.client.try_borrow(), other.client.try_borrow()) else {
            return false;
        };
        let handles = (self.outbox.try_borrow_mut(), other.outbox.try_borrow_mut());
        let (Ok(mut outbox), Ok(mut other)) = handles else { return false };
        own.inherit(&mut outbox, &left, &mut other)
    }

    /// The lines for the log since the last call.
    #[must_use]
    pub fn take_log_lines(&self) -> Vec<String> {
        let client = self.client.try_borrow_mut();
        client.map(|mut client| std::mem::take(&mut client.log_lines)).unwrap_or_default()
    }
}

impl Backend for RedisConnection {
    fn open(
        &mut self,
        rule: usize,
        spec: CounterSpec,
        stores: &mut Stores<'_>,
    ) -> Option<Box<dyn Store>> {
        let store = RedisStore::new(spec, rule, self.outbox.clone(), stores).ok()?;
        Some(Box::new(store))
    }

    fn open_bans(
        &mut self,
        rule: usize,
        fingerprint: u64,
        ban: &Ban,
        spec: &CounterSpec,
    ) -> Box<dyn BanAuthority> {
        Box::new(RedisBans::new(rule, fingerprint, ban, spec, self.outbox.clone()))
    }

    fn seed(&self) -> Seed {
        self.client.borrow().seed()
    }

    fn shard(&self, caller: Key) -> u16 {
        self.client.borrow().shards().of(caller).number()
    }

    fn unavailable_shards(&self) -> usize {
        self.read(Outbox::unavailable_shards).unwrap_or(0)
    }

    fn send(&mut self, id: u64, questions: Vec<Question>, delay: Micros, since: Micros) {
        let mut outbox = self.outbox.borrow_mut();
        outbox.beats = true;
        self.client.borrow_mut().ask(id, delay, questions, since, &mut outbox);
    }

    fn probe(&mut self) {
        let mut outbox = self.outbox.borrow_mut();
        // A worker that does not use Redis does not read the shared record of unavailable shards,
        // so its copy may be old.
        if !std::mem::replace(&mut outbox.in_use, true) {
            self.client.borrow_mut().refresh(&mut outbox);
        }
    }

    fn next_complete(&mut self) -> Option<(Receiver, Replies)> {
        self.outbox.borrow_mut().results.next_complete()
    }

    fn take_counts(&mut self) -> BackendCounts {
        let unsettled = std::mem::take(&mut self.outbox.borrow_mut().ledgers.dropped);
        BackendCounts { unsettled, ..std::mem::take(&mut self.client.borrow_mut().counts) }
    }
}
