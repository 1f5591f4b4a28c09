//! Usage counted for the whole gateway where its workers are threads of one process: a table for each
//! rule, in parts behind locks. No worker leases permits, so a gateway alone admits exactly the limit.
//!
//! A worker reads and changes a caller's state under a lock. From its check to its charge it has the
//! caller's [turn](Turns): no other worker can charge the caller. So a charge is cancelled only if a
//! rule of another scope refuses. A request takes all of its turns together, in one order, so that
//! workers never wait for each other in a circle.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CounterSpec;
use super::slots::one_more;
use super::table::Table;
use diana_algorithm::Algorithm;
use diana_policy::key::Key;
use diana_policy::time::Now;

/// The parts of a table. Workers with different callers rarely wait for each other.
const PARTS: usize = 16;

/// Tables for fewer callers have one part: hashes would not fill the parts evenly.
const FEW: usize = 1024;

/// Turns of all callers of all rules.
const TURNS: usize = 256;

/// The tables of a process, and the turns of its callers. It exists until the process ends, since
/// usage stays when all configurations end.
#[derive(Debug)]
pub struct Process {
    tables: Mutex<Vec<RuleTable>>,
    turns: [Mutex<()>; TURNS],
}

/// The table of a rule.
#[derive(Debug)]
struct RuleTable {
    namespace: Box<str>,
    fingerprint: u64,
    table: Arc<ProcessTable>,
}

/// The table of a rule for all workers.
pub struct ProcessTable {
    first: Mutex<Table>,
    /// The other parts, none for few callers.
    more: Vec<Mutex<Table>>,
    /// The algorithms of all configurations with the rule, one for equal ones of several workers.
    algorithms: Mutex<Vec<Arc<dyn Algorithm>>>,
}

/// The turns of a request's callers, until it is dropped.
#[derive(Debug, Default)]
pub struct Turns {
    /// Most requests have one.
    _first: Option<MutexGuard<'static, ()>>,
    _more: Vec<MutexGuard<'static, ()>>,
}

/// The number of a caller's turn under a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnNumber(u8);

impl TurnNumber {
    /// The turn of a caller under the rule with this fingerprint.
    #[must_use]
    #[inline]
    pub fn of(fingerprint: u64, key: Key) -> TurnNumber {
        TurnNumber((fingerprint ^ key.second_hash) as u8)
    }
}

impl Default for Process {
    fn default() -> Process {
        Process { tables: Mutex::default(), turns: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl Process {
    /// The table of a rule, with the usage under earlier configurations. Drops the tables of removed
    /// rules whose usage has expired.
    pub(super) fn open(&self, namespace: &str, spec: &CounterSpec, now: Now) -> Arc<ProcessTable> {
        let mut tables = lock(&self.tables);
        tables.retain(|known| Arc::strong_count(&known.table) > 1 || !known.table.is_expired(now));
        let same = |known: &&RuleTable| {
            known.fingerprint == spec.fingerprint && *known.namespace == *namespace
        };
        if let Some(known) = tables.iter().find(same) {
            return known.table.clone();
        }
        let table = Arc::new(ProcessTable::new(spec));
        let (namespace, fingerprint) = (namespace.into(), spec.fingerprint);
        tables.push(RuleTable { namespace, fingerprint, table: table.clone() });
        table
    }

    /// Waits for one turn.
    #[must_use]
    pub fn turn(&'static self, number: TurnNumber) -> Turns {
        let first = self.turns.get(usize::from(number.0)).map(lock);
        Turns { _first: first, _more: Vec::new() }
    }

    /// Waits for all of these turns.
    #[must_use]
    #[inline]
    pub fn turns(&'static self, mut numbers: impl Iterator<Item = TurnNumber>) -> Turns {
        let (first, second) = (numbers.next(), numbers.next());
        match (first, second) {
            (None, _) => Turns::default(),
            (Some(first), None) => self.turn(first),
            (Some(first), Some(second)) => {
                self.several(&mut [first, second].into_iter().chain(numbers))
            }
        }
    }

    #[inline(never)]
    fn several(&'static self, numbers: &mut dyn Iterator<Item = TurnNumber>) -> Turns {
        let mut numbers: Vec<TurnNumber> = numbers.collect();
        numbers.sort_unstable();
        numbers.dedup();
        let turns = numbers.iter().filter_map(|number| self.turns.get(usize::from(number.0)));
        Turns { _first: None, _more: turns.map(lock).collect() }
    }
}

impl ProcessTable {
    fn new(spec: &CounterSpec) -> ProcessTable {
        let parts = if spec.keys < FEW { 1 } else { PARTS };
        let part = || Mutex::new(Table::new(spec.algorithm.clone(), part_of(spec.keys, parts)));
        let more = (1..parts).map(|_| part()).collect();
        ProcessTable { first: part(), more, algorithms: Mutex::default() }
    }

    fn parts(&self) -> impl Iterator<Item = &Mutex<Table>> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// The capacity of a part, if this is the capacity of the table.
    pub(super) fn callers_of_part(&self, keys: usize) -> usize {
        part_of(keys, 1 + self.more.len())
    }

    fn is_expired(&self, now: Now) -> bool {
        self.parts().all(|part| lock(part).is_expired(now))
    }

    /// An equal algorithm of another worker, or else this one.
    pub(super) fn shared(&self, algorithm: &Arc<dyn Algorithm>) -> Arc<dyn Algorithm> {
        let mut known = lock(&self.algorithms);
        known.retain(|known| Arc::strong_count(known) > 1);
        let text = format!("{algorithm:?}");
        if let Some(equal) = known.iter().find(|known| format!("{known:?}") == text) {
            return equal.clone();
        }
        known.push(algorithm.clone());
        algorithm.clone()
    }

    /// The part with a caller, which no other worker changes in the meantime. A panic that a part has
    /// survived is counted in `emptied`.
    #[inline]
    pub(super) fn part(&self, key: Key, emptied: &Cell<u64>) -> MutexGuard<'_, Table> {
        // A table uses the highest and the lowest bits of the hash.
        let part = self.more.get((key.hash >> 32) as usize % PARTS).unwrap_or(&self.first);
        #[cfg(feature = "explored")]
        crate::explored::wait(part);
        part.lock().unwrap_or_else(|poisoned| {
            // A state may be half written. Usage is lost, so at most one further limit is admitted.
            part.clear_poison();
            one_more(emptied);
            let mut table = poisoned.into_inner();
            table.empty();
            table
        })
    }
}

impl fmt::Debug for ProcessTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessTable").field("parts", &self.parts().count()).finish_non_exhaustive()
    }
}

/// Hashes do not fill parts evenly: an eighth more is ten standard deviations of the smallest part
/// of a table with the default number of callers.
fn part_of(keys: usize, parts: usize) -> usize {
    match parts {
        1 => keys,
        _ => keys.div_ceil(parts) * 9 / 8 + 16,
    }
}

/// Locks a value that a panic leaves whole.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(feature = "explored")]
    crate::explored::wait(value);
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
