//! How much an algorithm lets through of what was really offered, by the plainest simulation.
//! A machine that could not keep the load up does not fail a test.

use std::collections::VecDeque;

use crate::harness::Shot;

/// When a request was judged, as well as can be told from outside.
fn judged(shots: &[Shot]) -> impl Iterator<Item = u64> {
    shots.iter().map(|shot| shot.sent.midpoint(shot.received))
}

/// `limit` in each window aligned to `unit`.
pub fn fixed_window(shots: &[Shot], limit: u32, unit: u64) -> usize {
    let mut window = (0, 0);
    let fits = |now: &u64| {
        if now / unit != window.0 {
            window = (now / unit, 0);
        }
        window.1 += 1;
        window.1 <= limit
    };
    judged(shots).filter(fits).count()
}

/// `limit` permits, each of which comes back after `hold`.
pub fn sliding_window(shots: &[Shot], limit: u32, hold: u64) -> usize {
    let mut out = VecDeque::new();
    let fits = |now: &u64| {
        while out.front().is_some_and(|taken| taken + hold <= *now) {
            out.pop_front();
        }
        let fits = out.len() < limit as usize;
        if fits {
            out.push_back(*now);
        }
        fits
    };
    judged(shots).filter(fits).count()
}

/// A bucket of `burst` tokens, full at the start, that gets one more each `interval`.
pub fn token_bucket(shots: &[Shot], burst: u64, interval: u64) -> usize {
    let (mut empty_at, mut admitted) = (0, 0);
    for now in judged(shots) {
        // The bucket holds a token for each interval since it was last empty.
        empty_at = empty_at.max(now.saturating_sub(burst * interval));
        if now.saturating_sub(empty_at) >= interval {
            empty_at += interval;
            admitted += 1;
        }
    }
    admitted
}
