//! Hot keys: callers who come more than `over` times in `per`, found in bounded memory.
//!
//! Requests are gathered in `counts`, and ten times a second added to a `window` over `per`: the
//! worker's own, or one that all workers of the gateway share. A caller is hot as long as the window
//! holds more than `over` of its requests.
//!
//! Both forget in the way of Misra and Gries (1982): where there is no room, all counters are lowered
//! by the same amount and the empty ones dropped, so that a flood of callers who come once lowers
//! nobody by much. What was lowered is known, and is the most by which any count is too low. No count
//! is ever too high.
//!
//! A request costs one look into one table: callers that are hot by the window are marked in it. The worker that changes
//! the number of hot callers by its compare-and-swap moves the gauge, and the worker that starts the next list logs it.

mod counts;
pub mod spotter;
mod window;

/// The least number that at most `most` counts are above; `above` says how many are above a number. It
/// mostly is small.
#[inline(never)]
fn cut(most: usize, above: &dyn Fn(u64) -> usize) -> u64 {
    let mut high = 1;
    while above(high) > most {
        high *= 2;
    }
    let mut low = high / 2;
    while low < high {
        let middle = low.midpoint(high);
        if above(middle) > most {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
