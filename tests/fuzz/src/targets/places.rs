//! What is in shared data of requests that are settled at their ends, or are in flight: whatever stands there, no place is
//! lost for good, and nobody gets more than the limit at once.

use fastrand::Rng;
use kit::in_flight::spoiled;

pub fn run(input: &[u8]) {
    fastrand::feed(input);
    spoiled::play(&mut Rng::with_seed(0));
}
