//! Where usage is counted. A store owns atomicity: it runs the pure step of an algorithm and keeps
//! what the step wrote.

pub mod bans;
pub mod daily;
mod found;
pub(crate) mod lease;
pub(crate) mod leases;
pub mod local;
pub mod remains;
pub(crate) mod reservation;
pub mod shared;
mod slab;
mod state;
pub mod table;
pub mod tables;
mod watermark;
mod weak_registry;

use std::rc::Rc;

use crate::algorithm::{Algorithm, Can, Entry};
use crate::bloom::Shape;
use crate::decision::Decision;
use crate::key::Key;
use crate::policy::{Ban, Memory, Quota, Scope};
use crate::port::SharedData;
use crate::time::{Micros, Now};
use bans::Bans;
use daily::{Daily, Terms};
use local::Local;
pub use reservation::Reservation;
use shared::Shared;
use shared::names::Names;
use shared::traffic::Traffic;
use table::Table;
use tables::Tables;

/// The memory for `keys` callers with `words` words of state each, counted as widely as `scope` says, and
/// for as many bans where there are any.
#[must_use]
#[inline(never)]
pub fn memory(scope: Scope, words: usize, keys: usize, bans: bool) -> Memory {
    let sets = if bans { bans::bytes(keys) } else { 0 };
    match scope {
        Scope::Local => Memory { worker: Table::bytes(words, keys) + sets, shared: 0 },
        Scope::Gateway | Scope::Global => {
            let Memory { worker, shared } = shared::memory(words, keys);
            let lines = if bans { bans::shared::bytes(keys) } else { 0 };
            Memory { worker: worker + lines, shared: shared + sets }
        }
    }
}

/// The callers of one rule.
pub trait Store {
    /// Checks a request and charges nothing.
    fn check(&mut self, key: Key, now: Now) -> Reservation;

    /// Charges a request, to leave `delay` ticks after it was checked, which is no less than the
    /// wait that this rule asked for. Where the decision is not an admission with a wait of at
    /// most `delay`, nothing was charged: somebody else was faster, or the rule cannot hold a
    /// request that long.
    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision;

    /// Checks a request to which no other rule has to agree: it is charged with it if it may leave at
    /// once and nobody shares its caller's bucket.
    fn take(&mut self, key: Key, now: Now) -> Reservation {
        let mut reservation = self.check(key, now);
        if reservation.is_free() {
            reservation.decision = self.charge(&mut reservation, 0);
        }
        reservation
    }

    /// Whether a request can be held for `delay` ticks, because another rule asks for it: an
    /// admission, or when it can. Charges nothing.
    fn can_hold(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision;

    /// Takes a charge back, since another rule would not be charged.
    fn undo(&mut self, reservation: &mut Reservation);

    /// Permits left after the charge, or as the request found it if there was none; never more than
    /// the truth.
    fn remaining(&mut self, reservation: &Reservation) -> u64;

    /// Forgets that others held what a caller needed, so that the next check is no older than it.
    fn look_again(&mut self, _key: Key) {}

    /// So many requests of a caller wait for permits here.
    fn wait(&mut self, _key: Key, _requests: usize) {}

    /// More requests of a caller wait for permits than may.
    fn crowd(&mut self, _key: Key, _now: Now) {}

    /// What [`Store::leave`] needs to give the place of a request back that was charged.
    fn receipt(&self, reservation: &Reservation) -> u64;

    /// Gives the place of a held request back, if it still is the last in its line.
    fn leave(&mut self, key: Key, receipt: u64, now: Now);

    /// The caller is hot: it is going to need about so many permits in the next tenth of a second.
    fn hint_demand(&mut self, _key: Key, _permits: u64) {}

    /// Does what has to be done from time to time. Whether there is more to do soon, even if no
    /// request comes.
    fn tidy(&mut self, now: Now) -> bool;

    /// How many callers more are in this worker's memory than when this was last asked.
    fn change_in_keys(&mut self) -> i64;

    /// Ends this store, unless it is asked again; the same as [`Store::change_in_keys`] for the last time.
    fn close(&mut self, now: Now) -> i64;
}

/// What a store counts, and by what.
#[derive(Debug, Clone)]
pub struct CounterSpec {
    /// What its algorithm is known by.
    pub entry: &'static Entry,
    /// How much it allows.
    pub quota: Quota,
    /// The algorithm, built from both.
    pub algorithm: Rc<dyn Algorithm>,
    /// Permits that a request takes.
    pub cost: u64,
    /// Tells the rule apart from all others of its namespace; equal across configurations as long
    /// as it is the same rule.
    pub identity: u64,
    /// How many live callers room is made for.
    pub keys: usize,
    /// The filter in which accounts are counted by the day, if they are.
    pub daily: Option<Shape>,
    /// Whether requests may be under other rules, too, so that a charge may be taken back.
    pub beside: bool,
}

impl CounterSpec {
    /// What the algorithm can do.
    #[must_use]
    pub fn can(&self) -> Can {
        (self.entry.can)(&self.quota)
    }
}

/// What all stores of a configuration have in common.
pub struct Stores<'s> {
    /// Prefix of shared keys.
    pub namespace: Rc<str>,
    /// What all workers share.
    pub data: Rc<dyn SharedData>,
    /// What was done with it.
    pub traffic: Rc<Traffic>,
    tables: &'s mut Tables,
}

impl<'s> Stores<'s> {
    /// Stores under a prefix of shared keys, which is also the namespace of `tables`.
    pub fn new(namespace: Rc<str>, data: Rc<dyn SharedData>, tables: &'s mut Tables) -> Stores<'s> {
        Stores { namespace, data, traffic: Rc::default(), tables }
    }

    /// The store of a rule. What is to be counted wider than in a gateway is counted in the gateway.
    pub fn open(&mut self, scope: Scope, spec: CounterSpec) -> Box<dyn Store> {
        if let Some(daily) = self.open_daily(&spec) {
            return Box::new(daily);
        }
        match scope {
            Scope::Local => {
                let table = self.tables.open(&self.namespace, &spec);
                Box::new(Local::new(spec, table))
            }
            Scope::Gateway | Scope::Global => Box::new(self.opener()(spec)),
        }
    }

    /// The bans of a rule with this identity, made for so many callers.
    pub fn open_bans(&mut self, scope: Scope, ban: Ban, rule: u64, keys: usize) -> Box<dyn Bans> {
        match scope {
            Scope::Local => {
                let sets = self.tables.open_bans(&self.namespace, ban.identity(rule), keys);
                Box::new(bans::local::Local::new(ban, sets))
            }
            Scope::Gateway | Scope::Global => Box::new(self.open_shared_bans(ban, rule, keys)),
        }
    }

    /// The same, counted in the gateway.
    pub(crate) fn open_shared_bans(
        &self,
        ban: Ban,
        rule: u64,
        keys: usize,
    ) -> bans::shared::Shared {
        let names = Names::new(&self.namespace, ban.identity(rule), keys);
        bans::shared::Shared::new(ban, names, keys, self.data.clone(), self.traffic.clone())
    }

    /// What counts many accounts by the day in this worker, if that is what is to be counted.
    pub(crate) fn open_daily(&mut self, spec: &CounterSpec) -> Option<Daily> {
        let terms = Terms { shape: spec.daily?, cost: spec.cost, zone: spec.quota.ahead() };
        let filter = self.tables.open_daily(&self.namespace, spec, terms);
        Some(Daily::new(spec, filter))
    }

    /// Opens stores of this gateway.
    pub(crate) fn opener(&self) -> impl Fn(CounterSpec) -> Shared + use<> {
        let (namespace, data) = (self.namespace.clone(), self.data.clone());
        let traffic = self.traffic.clone();
        move |spec| Shared::new(spec, &namespace, data.clone(), traffic.clone())
    }
}
