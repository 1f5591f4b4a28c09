//! Where randomness starts.

use std::hash::{BuildHasher, RandomState};

/// The seed in `DIANA_SEED`, to replay a failure; otherwise a new one, printed.
pub fn fresh() -> u64 {
    let seed = match std::env::var("DIANA_SEED") {
        Ok(text) => text.parse().expect("DIANA_SEED is a number"),
        Err(_) => RandomState::new().hash_one(0),
    };
    println!("replay with DIANA_SEED={seed}");
    seed
}
