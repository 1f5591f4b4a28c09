//! What must never be exceeded.
//!
//! A request was judged somewhere between its sending and its answer. So only those that lie wholly
//! inside an interval count for it, and no delay of the machine can make these checks fail wrongly.

use std::ops::Range;

use crate::harness::{NO_EXCUSE, Shot};

/// How far the filter's idea of wall time may lie from ours, in microseconds.
const CLOCK_ERROR: u64 = 5_000;

/// At most `limit` in each window that is aligned to `unit`.
#[track_caller]
pub fn in_each_window(admitted: &[Shot], limit: u32, unit: u64) {
    in_windows(admitted, unit, 0, |_| limit);
}

/// At most `limit(window)` in each window that is aligned to `unit`, but for `spare` in all of them.
#[track_caller]
pub fn in_windows(admitted: &[Shot], unit: u64, spare: u32, limit: impl Fn(Range<u64>) -> u32) {
    let first = admitted.iter().map(|shot| shot.sent).min().unwrap() / unit;
    let last = admitted.iter().map(|shot| shot.received).max().unwrap() / unit;
    let (mut bound, mut left) = (u64::from(spare), spare as usize);
    for window in first..=last {
        let limit = limit(window * unit..(window + 1) * unit);
        bound += u64::from(limit);
        let (begin, end) = (window * unit + CLOCK_ERROR, (window + 1) * unit - CLOCK_ERROR);
        let inside = |shot: &&Shot| shot.sent >= begin && shot.received < end;
        let count = admitted.iter().filter(inside).count();
        let (number, above) = (window - first, count.saturating_sub(limit as usize));
        assert!(above <= left, "{count} in window {number}, limit {limit} + {left}; {NO_EXCUSE}");
        left -= above;
    }
    let (total, windows) = (admitted.len() as u64, last - first + 1);
    assert!(total <= bound, "{total} in {windows} windows, bound {bound}; {NO_EXCUSE}");
}

/// At most `bound(length)` in any interval, for every length that occurs.
#[track_caller]
pub fn in_any_interval(admitted: &[Shot], bound: impl Fn(u64) -> u64) {
    let mut by_sending = admitted.to_vec();
    by_sending.sort_by_key(|shot| shot.sent);
    for first in by_sending {
        // `admitted` is in the order of the answers.
        let inside = admitted.iter().filter(|shot| shot.sent >= first.sent);
        for (count, shot) in (1..).zip(inside) {
            let span = shot.received - first.sent;
            let most = bound(span);
            assert!(count <= most, "{count} in {span} µs, bound {most}; {NO_EXCUSE}");
        }
    }
}
