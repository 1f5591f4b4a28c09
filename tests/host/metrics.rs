//! Envoy's metrics: one value per name in the whole process.

use std::collections::BTreeMap;

use super::status::Status;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn from_abi(kind: u32) -> Option<Kind> {
        [Kind::Counter, Kind::Gauge, Kind::Histogram].into_iter().nth(kind as usize)
    }
}

/// All metrics of the process. A histogram only counts its records.
#[derive(Default)]
pub struct Metrics {
    values: BTreeMap<(String, Kind), u64>,
}

impl Metrics {
    pub fn define(&mut self, name: &str, kind: Kind) {
        self.values.entry((name.into(), kind)).or_insert(0);
    }

    /// Counters only grow, and by at least one.
    pub fn increment(&mut self, name: &str, kind: Kind, offset: i64) -> Result<(), Status> {
        let allowed = match kind {
            Kind::Counter => offset > 0,
            Kind::Gauge => true,
            Kind::Histogram => false,
        };
        if !allowed {
            return Err(Status::BadArgument);
        }
        let value = self.value(name, kind);
        *value = value.wrapping_add_signed(offset);
        Ok(())
    }

    pub fn record(&mut self, name: &str, kind: Kind, value: u64) {
        let slot = self.value(name, kind);
        *slot = match kind {
            Kind::Counter => *slot + value,
            Kind::Gauge => value,
            Kind::Histogram => *slot + 1,
        };
    }

    pub fn get(&self, name: &str, kind: Kind) -> Option<u64> {
        self.values.get(&(name.into(), kind)).copied()
    }

    /// All defined names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(|(name, _)| name.as_str())
    }

    fn value(&mut self, name: &str, kind: Kind) -> &mut u64 {
        self.values.entry((name.into(), kind)).or_insert(0)
    }
}
