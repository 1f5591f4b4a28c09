//! What opens the stores of a configuration, and how much memory they take.

use std::rc::Rc;

use super::daily::{Daily, Terms};
use super::in_flight::InFlight;
use super::leases::Leases;
use super::local::Local;
use super::places;
use super::shared::{self, Shared};
use super::slots::traffic::Traffic;
use super::table::Table;
use super::tables::Tables;
use super::{CounterSpec, Store};
use diana_algorithm::calendar::Windows;
use diana_policy::port::SharedData;
use diana_policy::{Memory, Scope};

/// Callers that a worker remembers of each of so many rules.
#[must_use]
pub fn lines(rules: usize) -> usize {
    Leases::lines(rules)
}

/// The memory of one of `rules` rules for so many callers, or for all as one, with `words` words of state each, counted in
/// `scope`.
#[must_use]
#[inline(never)]
pub fn memory(scope: Scope, words: usize, callers: Option<usize>, rules: usize) -> Memory {
    match scope {
        Scope::Local => Memory { worker: Table::bytes(words, callers.unwrap_or(1)), shared: 0 },
        Scope::Gateway | Scope::Global => shared::memory(words, callers, lines(rules)),
    }
}

/// The memory for the places in flight of so many callers, or of everybody as one, counted in the gateway.
#[must_use]
pub fn memory_of_places(callers: Option<usize>) -> Memory {
    places::memory(callers)
}

/// What all stores of a configuration have in common.
pub struct Stores<'s> {
    /// Prefix of shared keys.
    pub namespace: Rc<str>,
    /// What all workers share.
    pub data: Rc<dyn SharedData>,
    /// What was done with it.
    pub traffic: Rc<Traffic>,
    /// Whether an operator may lift bans.
    pub lifts: bool,
    tables: &'s mut Tables,
}

impl<'s> Stores<'s> {
    /// Stores under a prefix of shared keys, which is also the namespace of `tables`.
    pub fn new(namespace: Rc<str>, data: Rc<dyn SharedData>, tables: &'s mut Tables) -> Stores<'s> {
        Stores { namespace, data, traffic: Rc::default(), lifts: false, tables }
    }

    /// The store of a rule. What is to be counted wider than in a gateway is counted in the gateway.
    pub fn open(&mut self, scope: Scope, spec: CounterSpec) -> Box<dyn Store> {
        if let Some(daily) = self.open_daily(&spec) {
            return Box::new(daily);
        }
        match scope {
            Scope::Local => {
                let table = self.tables.open(&self.namespace, &spec);
                Box::new(Local::new(&spec, table))
            }
            Scope::Gateway | Scope::Global => self.opener(&spec)(spec),
        }
    }

    /// Where the bans with this fingerprint lie: in shared data, or for `local` in this worker.
    pub fn data_of_bans(
        &mut self,
        scope: Scope,
        fingerprint: u64,
    ) -> (Rc<dyn SharedData>, Rc<Traffic>) {
        match scope {
            // These writes are no traffic of shared data, which is reported.
            Scope::Local => (self.tables.open_bans(&self.namespace, fingerprint), Rc::default()),
            Scope::Gateway | Scope::Global => (self.data.clone(), self.traffic.clone()),
        }
    }

    /// What counts many accounts by the day in this worker, if that is what is to be counted.
    pub fn open_daily(&mut self, spec: &CounterSpec) -> Option<Daily> {
        let terms =
            Terms { shape: spec.daily?, cost: spec.unit_cost, days: Windows::of(&spec.quota) };
        let filter = self.tables.open_daily(&self.namespace, spec, terms);
        Some(Daily::new(spec, filter))
    }

    /// A store of this gateway for what is leased.
    pub fn open_shared(&self, spec: CounterSpec) -> Shared {
        Shared::new(spec, &self.namespace, self.data.clone(), self.traffic.clone())
    }

    /// Opens stores of this gateway for rules that count by the same algorithm as this one.
    pub fn opener(&mut self, spec: &CounterSpec) -> impl Fn(CounterSpec) -> Box<dyn Store> + use<> {
        let (namespace, data) = (self.namespace.clone(), self.data.clone());
        let traffic = self.traffic.clone();
        let is_held = spec.algorithm.properties().is_held;
        let holders = is_held.then(|| self.tables.open_holders(&self.namespace));
        move |spec| match &holders {
            Some(holders) => {
                let (data, holders) = (data.clone(), holders.clone());
                let places = places::Places::new(&spec, &namespace, data, traffic.clone(), holders);
                Box::new(InFlight::new(places, traffic.clone()))
            }
            None => Box::new(Shared::new(spec, &namespace, data.clone(), traffic.clone())),
        }
    }
}
