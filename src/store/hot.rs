//! Hot keys: callers with more than `over` requests in `per`, found in bounded memory.
//!
//! Requests are collected in `counts`, and added ten times a second to a `window` over `per`: of
//! this worker, or shared by all workers of the gateway. A caller is hot while the window holds
//! more than `over` of its requests.
//!
//! Both discard counts as in Misra and Gries (1982): without free entries, all counters are lowered
//! by the same amount and empty ones are dropped, so that a flood of one-time callers lowers no
//! counter by much. The total of these amounts bounds the error of every count. No count is ever
//! too high.
//!
//! A request costs one lookup in one table, in which callers that are hot by the window are marked.
//! The worker whose compare-and-swap changes the number of hot callers also changes the gauge, and
//! the worker that starts the next list logs it.

mod counts;
pub mod spotter;
mod window;

/// The smallest number that is exceeded by at most `most` counts. `above` returns how many counts
/// exceed a number. Fast for small results.
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
