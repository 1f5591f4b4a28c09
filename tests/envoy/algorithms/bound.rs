//! What must never be exceeded.
//!
//! A request was judged somewhere between its sending and its answer. So only those that lie wholly
//! inside an interval count for it, and no delay of the machine can make these checks fail wrongly.

use crate::harness::Shot;

/// How far the filter's idea of wall time may lie from ours, in microseconds.
const CLOCK_ERROR: u64 = 5_000;

/// At most `limit` in each window that is aligned to `unit`.
#[track_caller]
pub fn in_each_window(admitted: &[Shot], limit: u32, unit: u64) {
    let first = admitted.first().unwrap().sent / unit;
    let last = admitted.last().unwrap().received / unit;
    for window in first..=last {
        let (begin, end) = (window * unit + CLOCK_ERROR, (window + 1) * unit - CLOCK_ERROR);
        let inside = |shot: &&Shot| shot.sent >= begin && shot.received < end;
        let count = admitted.iter().filter(inside).count();
        assert!(count <= limit as usize, "{count} in window {}, limit {limit}", window - first);
    }
    let (total, bound) = (admitted.len() as u64, u64::from(limit) * (last - first + 1));
    assert!(total <= bound, "{total} in {} windows, bound {bound}", last - first + 1);
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
            assert!(count <= bound(span), "{count} in {span} µs, bound {}", bound(span));
        }
    }
}
