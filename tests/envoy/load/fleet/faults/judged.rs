//! What is right and wrong with what a fault did.

use std::cmp::Reverse;
use std::ops::Range;
use std::time::Duration;

use super::super::modes::{Alone, NOTICED_LATER, alone_within, delaying, without_cause};
use super::super::{SECOND, admitted};
use super::trial::{Fault, Kind, LIMIT, SHARE, Seen, TIMEOUT};
use crate::harness::{Complaint, Histogram, Hit, NO_EXCUSE, stood_still};
use crate::load::algorithms::{bound, expected};

/// No wait may be longer: the timeout and 10 ms.
const LONGEST_WAIT: u64 = TIMEOUT + 10_000;

impl Seen {
    fn hits(&self, kind: Kind) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(move |hit| Kind::of(hit.shot.path) == kind)
    }

    /// What no delay of the machine excuses.
    #[track_caller]
    pub fn assert_kept<R>(&self, fault: &Fault<'_, R>) {
        let unhindered = self.hits(Kind::Each).all(|hit| hit.shot.status == 200);
        let name = fault.name;
        assert!(unhindered, "{name}: somebody was refused who is below his limit; {NO_EXCUSE}");
        // A Redis that forgot knows no gateways either, and tells each that it is the only one.
        let forgotten = LIMIT * fault.emptied;
        bound::in_windows(&admitted(self.hits(Kind::Hot)), SECOND, forgotten, |window| {
            self.promised(&window)
        });
        for gateway in 0..fault.cut_off {
            let passed = admitted(&self.alone_at(gateway));
            if !passed.is_empty() {
                bound::in_each_window(&passed, SHARE, SECOND);
            }
        }
    }

    /// Most that may be let through in a window: the limit, and a part for each gateway that says that it
    /// was alone in it.
    fn promised(&self, window: &Range<u64>) -> u32 {
        LIMIT + SHARE * alone_within(&self.alone, window)
    }

    /// What went to a gateway that was cut off, in the whole seconds that it was alone.
    fn alone_at(&self, gateway: usize) -> Vec<Hit> {
        let Range { start, end } = self.whole_seconds_alone(gateway);
        let inside = |hit: &&Hit| {
            hit.gateway == gateway && hit.shot.sent >= start && hit.shot.received < end
        };
        self.hits(Kind::Hot).filter(inside).copied().collect()
    }

    /// Within the fault a gateway may count together again, by a replica that takes over.
    fn whole_seconds_alone(&self, gateway: usize) -> Range<u64> {
        let Range { start, end } = self.all_alone;
        let is_this = |alone: &&Alone| alone.gateway == gateway && alone.logged <= start;
        let until = self.alone.iter().filter(is_this).map(|alone| alone.surely_until).max();
        start.div_ceil(SECOND) * SECOND..end.min(until.unwrap_or(start)) / SECOND * SECOND
    }

    /// What is wrong, unless the machine caused it.
    pub fn complaints<R>(&self, fault: &Fault<'_, R>) -> Vec<Complaint> {
        let alone = self.alone_without_cause(fault);
        let stingy = (0..fault.cut_off).filter_map(|gateway| self.stingy(gateway));
        alone
            .into_iter()
            .chain(self.too_long())
            .chain(self.too_late(fault.recovery))
            .chain(stingy)
            .collect()
    }

    /// Gateways that counted alone although they could reach Redis.
    fn alone_without_cause<R>(&self, fault: &Fault<'_, R>) -> Vec<Complaint> {
        let caused = self.fault.start..self.fault.end + TIMEOUT + NOTICED_LATER;
        let alone = self
            .alone
            .iter()
            .filter(|alone| alone.gateway >= fault.kept_from || !caused.contains(&alone.logged));
        without_cause(alone, TIMEOUT)
    }

    /// Requests that waited too long for Redis.
    fn too_long(&self) -> Option<Complaint> {
        let count: u64 = self.waits.iter().map(|wait| wait.above(LONGEST_WAIT as f64)).sum();
        if count == 0 {
            return None;
        }
        let waited = |hit: &&Hit| hit.shot.received - hit.shot.due > LONGEST_WAIT;
        let during = |hit: &Hit| hit.shot.due..hit.shot.received;
        let mut during: Vec<_> = self.hits.iter().filter(waited).map(during).collect();
        // Others had waited for outstanding permits before, which is no fault. The machine is to blame if it kept as
        // many of all these as waited too long.
        during.sort_by_key(|during| Reverse(stood_still(during)));
        during.truncate(usize::try_from(count).unwrap());
        let begun = self.fault.start;
        let when = |it: &Range<u64>| (it.start.wrapping_sub(begun) as i64, it.end - it.start);
        let those: Vec<_> = during.iter().map(when).collect();
        Some(Complaint {
            what: format!(
                "{count} requests waited up to {:.0} ms, maybe those of (came after the fault began, took) in us: {those:?}",
                self.longest_wait() / 1_000.0
            ),
            during,
            least: Duration::from_micros(LONGEST_WAIT - TIMEOUT) / 2,
        })
    }

    fn too_late(&self, most: Duration) -> Option<Complaint> {
        let took = self.recovery.as_micros() as u64;
        (self.recovery > most).then(|| {
            let what = format!("together again after {:?}", self.recovery);
            Complaint::new(what, self.fault.end..self.fault.end + took, delaying(TIMEOUT))
        })
    }

    /// Whether a gateway let less through than its part, in the whole seconds that it was alone.
    fn stingy(&self, gateway: usize) -> Option<Complaint> {
        let hits = self.alone_at(gateway);
        let shots: Vec<_> = hits.iter().map(|hit| hit.shot).collect();
        let expected = expected::fixed_window(&shots, SHARE, SECOND);
        let found = admitted(&hits).len();
        // What lies at the edges may count for the windows beside.
        (found + 2 < expected).then(|| {
            let what = format!("gateway {gateway} let {found} through, of {expected}");
            Complaint::new(what, self.whole_seconds_alone(gateway), delaying(TIMEOUT))
        })
    }

    fn longest_wait(&self) -> f64 {
        self.waits.iter().map(Histogram::most).fold(0.0, f64::max)
    }

    /// A row of the table in the docs.
    pub fn row<R>(&self, fault: &Fault<'_, R>) -> String {
        let passed = admitted(self.hits(Kind::Hot));
        let mut seconds: Vec<u64> = passed.iter().map(|shot| shot.sent / SECOND).collect();
        seconds.sort_unstable();
        let busiest = seconds.chunk_by(|one, next| one == next).max_by_key(|hits| hits.len());
        let (second, most) = busiest.map_or((0, 0), |hits| (hits[0], hits.len()));
        let further = match fault.emptied {
            0 => String::new(),
            times => format!(" + {}", LIMIT * times),
        };
        format!(
            "| {} | {} | 0 | {:.0} ms | {most} of {}{further} | {:.1} s |",
            fault.name,
            self.all,
            self.longest_wait() / 1_000.0,
            self.promised(&(second * SECOND..(second + 1) * SECOND)),
            self.recovery.as_secs_f64(),
        )
    }
}

/// The head of the table.
pub fn print_head() {
    println!(
        "| fault | requests | failed | longest wait | most in a second, of what is promised | together again after |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
}
