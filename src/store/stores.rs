//! Opens the stores of a configuration, and computes their memory.

use std::cell::Cell;
use std::rc::Rc;

use super::daily::{Daily, DailyTerms};
use super::in_flight::InFlightStore;
use super::in_flight_slots;
use super::leases::Leases;
use super::local::Local;
use super::process::Process;
use super::share::ShareStore;
use super::shared::{self, Shared};
use super::slots::Traffic;
use super::table::Table;
use super::tables::Tables;
use super::{CounterSpec, Store};
use diana_algorithm::calendar::Windows;
use diana_policy::port::SharedData;
use diana_policy::time::Now;
use diana_policy::{Memory, Scope};

/// The number of callers per rule that a worker remembers, for this number of rules.
#[must_use]
pub fn lines(rules: usize) -> usize {
    Leases::lines(rules)
}

/// The memory of one of `rules` rules for `callers`, or for one counter if `None`, with `words`
/// words of state each, counted in `scope`.
#[must_use]
#[inline(never)]
pub fn memory(scope: Scope, words: usize, callers: Option<usize>, rules: usize) -> Memory {
    match scope {
        Scope::Local => Memory { worker: Table::bytes(words, callers.unwrap_or(1)), shared: 0 },
        Scope::Gateway => shared::memory(words, callers, lines(rules), false),
        Scope::Global => shared::memory(words, callers, lines(rules), true),
    }
}

/// The memory for the in-flight slots of `callers`, or for one counter if `None`, counted in the
/// gateway.
#[must_use]
pub fn in_flight_memory(callers: Option<usize>) -> Memory {
    in_flight_slots::memory(callers)
}

/// The common data of all stores of a configuration.
pub struct Stores<'s> {
    /// Prefix of shared keys.
    pub namespace: Rc<str>,
    /// Shared data.
    pub data: Rc<dyn SharedData>,
    /// Counts of accesses to it.
    pub traffic: Rc<Traffic>,
    /// Whether operators may end bans.
    pub resets_bans: bool,
    /// The process and the present instant, if all workers are threads of one process.
    pub process: Option<(&'static Process, Now)>,
    /// The number of gateways that share the limits of the fleet, where it is known without Redis; else 1.
    pub gateways: Rc<Cell<u64>>,
    tables: &'s mut Tables,
}

impl<'s> Stores<'s> {
    /// Stores under a prefix of shared keys, which is also the namespace of `tables`.
    pub fn new(namespace: Rc<str>, data: Rc<dyn SharedData>, tables: &'s mut Tables) -> Stores<'s> {
        Stores {
            namespace,
            data,
            traffic: Rc::default(),
            resets_bans: false,
            process: None,
            gateways: Rc::new(Cell::new(1)),
            tables,
        }
    }

    /// Opens the store of a rule. Global rules get the store of this gateway.
    pub fn open(&mut self, scope: Scope, spec: CounterSpec) -> Box<dyn Store> {
        if let Some(daily) = self.open_daily(&spec) {
            return Box::new(daily);
        }
        match scope {
            Scope::Local => {
                let table = self.tables.open(&self.namespace, &spec);
                Box::new(Local::new(&spec, table))
            }
            Scope::Gateway => match self.open_in_process(&spec) {
                Some(store) => store,
                None => self.opener(&spec)(spec),
            },
            Scope::Global => self.opener(&spec)(spec),
        }
    }

    /// Opens the store of a global rule of which each gateway enforces its share, without Redis. There
    /// are `least` gateways or more.
    pub fn open_share(&mut self, least: u64, spec: CounterSpec) -> Box<dyn Store> {
        Box::new(ShareStore::new(spec, least, self))
    }

    /// The store of a `gateway` rule where all workers are threads of one process. `None` for
    /// requests in flight, which workers count by their heartbeats.
    fn open_in_process(&self, spec: &CounterSpec) -> Option<Box<dyn Store>> {
        let (process, now) = self.process.filter(|_| !spec.algorithm.properties().is_held)?;
        let table = process.open(&self.namespace, spec, now);
        Some(Box::new(Local::of_process(spec, table, self.traffic.clone())))
    }

    /// The data with the bans of this fingerprint: shared data, or for `local` this worker.
    pub fn data_of_bans(
        &mut self,
        scope: Scope,
        fingerprint: u64,
    ) -> (Rc<dyn SharedData>, Rc<Traffic>) {
        match scope {
            // These writes are not reported as traffic of shared data.
            Scope::Local => (self.tables.open_bans(&self.namespace, fingerprint), Rc::default()),
            Scope::Gateway | Scope::Global => (self.data.clone(), self.traffic.clone()),
        }
    }

    /// Opens the store of a daily quota of many accounts. `None` for other rules.
    pub fn open_daily(&mut self, spec: &CounterSpec) -> Option<Daily> {
        let terms =
            DailyTerms { shape: spec.daily?, cost: spec.unit_cost, days: Windows::of(&spec.quota) };
        let filter = self.tables.open_daily(&self.namespace, spec, terms);
        Some(Daily::new(spec, filter))
    }

    /// A function that opens stores of this gateway that lease permits.
    pub fn shared_opener(&self) -> impl Fn(CounterSpec) -> Shared + use<> {
        let (namespace, data) = (self.namespace.clone(), self.data.clone());
        let traffic = self.traffic.clone();
        move |spec| Shared::new(spec, &namespace, data.clone(), traffic.clone())
    }

    /// A function that opens stores of this gateway, for rules with this algorithm.
    pub fn opener(&mut self, spec: &CounterSpec) -> impl Fn(CounterSpec) -> Box<dyn Store> + use<> {
        let (namespace, data) = (self.namespace.clone(), self.data.clone());
        let (traffic, open) = (self.traffic.clone(), self.shared_opener());
        let is_held = spec.algorithm.properties().is_held;
        let holders = is_held.then(|| self.tables.open_holders(&self.namespace));
        move |spec| match &holders {
            Some(holders) => {
                let (data, holders) = (data.clone(), holders.clone());
                let slots = in_flight_slots::InFlightSlots::new(
                    &spec,
                    &namespace,
                    data,
                    traffic.clone(),
                    holders,
                );
                Box::new(InFlightStore::new(slots, traffic.clone()))
            }
            None => Box::new(open(spec)),
        }
    }
}
