//! Counts over time, in steps that grow with the length of the log, so that their number is
//! bounded.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use diana_policy::time::{DAY, Micros, SECOND};

/// The maximum number of steps.
const MOST: usize = 1000;

const MINUTE: Micros = 60 * SECOND;
const HOUR: Micros = 60 * MINUTE;

/// The possible lengths of a step: each is a multiple of the previous one.
const LENGTHS: [Micros; 13] = [
    SECOND,
    5 * SECOND,
    15 * SECOND,
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    HOUR,
    6 * HOUR,
    DAY,
    10 * DAY,
    100 * DAY,
    1_000 * DAY,
    // No log covers many of these.
    10_000 * DAY,
];

/// The counts of each step with any.
#[derive(Debug)]
pub struct Series<T> {
    length: usize,
    steps: BTreeMap<u64, Vec<T>>,
}

impl<T: AddAssign + Copy + Default> Series<T> {
    /// An empty series.
    pub fn new() -> Series<T> {
        Series { length: 0, steps: BTreeMap::new() }
    }

    /// Ticks of a step.
    pub fn length(&self) -> Micros {
        LENGTHS.get(self.length).copied().unwrap_or(DAY)
    }

    /// The number of the step of an instant, since the epoch.
    pub fn step(&self, at: Micros) -> u64 {
        at / self.length()
    }

    /// Adds counts of a step.
    pub fn add(&mut self, step: u64, counts: &[T]) {
        let known = self.steps.entry(step).or_insert_with(|| vec![T::default(); counts.len()]);
        known.iter_mut().zip(counts).for_each(|(sum, count)| *sum += *count);
        while self.steps.len() > MOST && self.length + 1 < LENGTHS.len() {
            self.lengthen();
        }
    }

    /// The steps: the start of each, and its counts.
    pub fn steps(&self) -> impl Iterator<Item = (Micros, &[T])> {
        self.steps.iter().map(|(step, counts)| (step * self.length(), counts.as_slice()))
    }

    fn lengthen(&mut self) {
        let before = self.length();
        self.length += 1;
        let times = self.length() / before;
        for (step, counts) in std::mem::take(&mut self.steps) {
            let known = self.steps.entry(step / times);
            let sums = known.or_insert_with(|| vec![T::default(); counts.len()]);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
}
