//! The memory of this worker: tables of its rules, filters of its daily quotas, and its bans.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::counter_spec::CounterSpec;
use super::daily::{DailyFilter, DailyTerms};
use super::in_flight_slots::Holders;
use super::table::Table;
use super::weak_registry::WeakRegistry;
use diana_policy::port::SharedData;

/// Values of this worker alone, by name, with the interface of shared data. A swap never fails.
struct LocalData(Rc<RefCell<LocalValues>>);

type LocalValues = BTreeMap<String, Vec<u8>>;

impl SharedData for LocalData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.0.borrow().get(key).map(|value| (value.clone(), 0))
    }

    fn swap(&self, key: &str, value: &[u8], _number: Option<u32>) -> bool {
        self.0.borrow_mut().insert(key.into(), value.into());
        true
    }
}

/// The memory of one worker.
#[derive(Debug, Default)]
pub struct Tables {
    tables: WeakRegistry<Table>,
    daily: WeakRegistry<DailyFilter>,
    bans: WeakRegistry<LocalValues>,
    holders: WeakRegistry<Holders>,
}

impl Tables {
    /// The table of a rule, taken over from an earlier configuration, or a new one.
    pub(super) fn open(&mut self, namespace: &Rc<str>, spec: &CounterSpec) -> Rc<RefCell<Table>> {
        if let Some(table) = self.tables.find(namespace, spec.fingerprint) {
            table.borrow_mut().adopt(spec.algorithm.clone(), spec.keys);
            return table;
        }
        let table = Table::new(spec.algorithm.clone(), spec.keys);
        self.tables.keep(namespace, spec.fingerprint, table)
    }

    /// This worker's entry among the workers of a namespace with in-flight slots, for all rules.
    pub(super) fn open_holders(&mut self, namespace: &Rc<str>) -> Rc<RefCell<Holders>> {
        match self.holders.find(namespace, 0) {
            Some(holders) => holders,
            None => self.holders.keep(namespace, 0, Holders::new(namespace)),
        }
    }

    /// The filter of a rule, in the same way.
    pub(super) fn open_daily(
        &mut self,
        namespace: &Rc<str>,
        spec: &CounterSpec,
        terms: DailyTerms,
    ) -> Rc<RefCell<DailyFilter>> {
        if let Some(filter) = self.daily.find(namespace, spec.fingerprint) {
            filter.borrow_mut().adopt(terms);
            return filter;
        }
        self.daily.keep(namespace, spec.fingerprint, DailyFilter::new(terms))
    }

    /// The bans of a rule, in the same way.
    pub(super) fn open_bans(
        &mut self,
        namespace: &Rc<str>,
        fingerprint: u64,
    ) -> Rc<dyn SharedData> {
        let found = self.bans.find(namespace, fingerprint);
        let keep = || self.bans.keep(namespace, fingerprint, LocalValues::default());
        Rc::new(LocalData(found.unwrap_or_else(keep)))
    }
}
