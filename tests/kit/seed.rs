//! Seeds of random tests. They are the same in each run, so that a failure is caused by a change of
//! the code.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The next seed of this test. `DIANA_SEED=<number>` replays one failure. `DIANA_SEED=fresh` draws
/// new seeds, as `make soak` does. Prints the seed.
///
/// # Panics
/// `DIANA_SEED` has another value.
pub fn next() -> u64 {
    let seed = match std::env::var("DIANA_SEED").as_deref() {
        Ok("fresh") => RandomState::new().hash_one(0),
        Ok(text) => text.parse().expect("DIANA_SEED is a number or `fresh`"),
        // Each test runs in a separate thread, so its seeds do not depend on other tests.
        Err(_) => CALLS.replace(CALLS.get() + 1),
    };
    println!("replay with DIANA_SEED={seed}");
    seed
}
