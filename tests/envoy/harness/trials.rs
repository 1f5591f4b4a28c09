//! Tests that judge by the clock, on a machine that may stand still meanwhile.

use std::iter;
use std::ops::Range;
use std::time::Duration;

use super::machine;

/// Marks a failure that no delay of the machine excuses, such as a limit that was exceeded.
pub const NO_EXCUSE: &str = "no delay of the machine excuses this";

/// Trials of one thing, until the machine lets one of them be.
const MOST: usize = 6;

/// What was wrong in a trial, other than a bound.
#[derive(Debug)]
pub struct Complaint {
    pub what: String,
    /// When it came about, in microseconds of Unix time: each time of its own.
    pub during: Vec<Range<u64>>,
    /// For how long a machine must have stood still in each of those to be the cause.
    pub least: Duration,
}

impl Complaint {
    pub fn new(what: String, during: Range<u64>, least: Duration) -> Complaint {
        Complaint { what, during: iter::once(during).collect(), least }
    }

    /// How long the machine stood still, where it did so least.
    fn stood_still(&self) -> Duration {
        self.during.iter().map(machine::stood_still).min().unwrap_or_default()
    }
}

/// Tries until nothing is wrong. A complaint that the machine did not cause is a failure, and so are
/// too many that it did: they show nothing, neither good nor bad.
#[track_caller]
pub fn try_until_undisturbed<T>(name: &str, mut trial: impl FnMut() -> (T, Vec<Complaint>)) -> T {
    machine::watch_machine();
    for number in 1..=MOST {
        let (seen, complaints) = trial();
        if complaints.is_empty() {
            return seen;
        }
        for complaint in complaints {
            let (still, what) = (complaint.stood_still(), &complaint.what);
            println!("{name}, trial {number}: {what}; the machine stood still for {still:?} then");
            assert!(still >= complaint.least, "{name}: {what}, and the machine ran; {NO_EXCUSE}");
        }
    }
    panic!("{name}: the machine spoiled {MOST} trials, so nothing was shown; {NO_EXCUSE}");
}
