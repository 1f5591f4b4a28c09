//! Whatever somebody else writes into shared data, what is in flight is known again soon.

use fastrand::Rng;
use kit::in_flight::spoiled;
use kit::seed;

#[test]
fn whatever_lies_in_shared_data_no_place_is_lost_for_good() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..1_000 {
        spoiled::play(&mut rng);
    }
}
