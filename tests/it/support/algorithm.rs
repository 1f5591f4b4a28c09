//! An algorithm whose calls a test observes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use diana_algorithm::{Algorithm, Balance, Properties};
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

/// An algorithm that counts expiry checks, and panics in each step while `panics` is set.
#[derive(Debug)]
pub struct ObservedAlgorithm {
    algorithm: Arc<dyn Algorithm>,
    pub expiry_checks: AtomicU64,
    pub panics: AtomicBool,
}

impl ObservedAlgorithm {
    pub fn new(algorithm: Arc<dyn Algorithm>) -> Self {
        let (expiry_checks, panics) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { algorithm, expiry_checks, panics }
    }
}

impl Algorithm for ObservedAlgorithm {
    fn properties(&self) -> &Properties {
        self.algorithm.properties()
    }

    fn step(&self, old: &[u64], now: Now, delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        assert!(!self.panics.load(Ordering::Relaxed), "a test wants it");
        self.algorithm.step(old, now, delay, cost, new)
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        self.algorithm.receipt(charged)
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        self.algorithm.settle(old, now, settlement, new);
    }

    fn spend_by(&self, charged: &[u64], now: Now) -> Option<Micros> {
        self.algorithm.spend_by(charged, now)
    }

    fn balance(&self, state: &[u64], now: Now) -> Balance {
        self.algorithm.balance(state, now)
    }

    fn reset(&self, old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        self.algorithm.reset(old, now, out, new)
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        self.expiry_checks.fetch_add(1, Ordering::Relaxed);
        self.algorithm.expires(state, now)
    }
}
