//! Seeds of random tests: the same in each run, so that a red test means a change in the code.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The next seed of this test. `DIANA_SEED=<number>` replays one failure; `DIANA_SEED=fresh`
/// draws seeds that no run has had, as `make soak` does. Prints the seed.
///
/// # Panics
/// If `DIANA_SEED` is neither.
pub fn next() -> u64 {
    let seed = match std::env::var("DIANA_SEED").as_deref() {
        Ok("fresh") => RandomState::new().hash_one(0),
        Ok(text) => text.parse().expect("DIANA_SEED is a number or `fresh`"),
        // Each test runs in a thread of its own, so its seeds do not depend on its neighbours.
        Err(_) => CALLS.replace(CALLS.get() + 1),
    };
    println!("replay with DIANA_SEED={seed}");
    seed
}
