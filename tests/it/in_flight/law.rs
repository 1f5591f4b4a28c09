//! At every instant: never more than the limit of a caller's, and refused only if that many are in flight.

use std::rc::Rc;

use diana_core::time::SECOND;
use fastrand::Rng;
use kit::seed;

use super::gateway::{AGAIN, Gateway};

/// Does something at random.
fn act(gateway: &Gateway, rng: &mut Rng, workers: usize, callers: usize) {
    match rng.u8(..40) {
        0 => gateway.wait(rng.u64(..3 * SECOND)),
        1 => gateway.kill(rng.usize(..workers)),
        2 => {
            let worker = rng.bool().then(|| rng.usize(..workers));
            gateway.stall(worker, rng.u64(..3 * SECOND));
        }
        3..=5 => gateway.wait(rng.u64(..SECOND / 50)),
        6..=20 => gateway.end(rng),
        _ => _ = gateway.request(rng.usize(..workers), rng.usize(..callers)),
    }
}

/// After all have ended, each caller has all of its places.
fn nothing_is_left(gateway: &Gateway, rng: &mut Rng, workers: usize, callers: usize, limit: usize) {
    gateway.end_all(rng);
    gateway.wait(AGAIN);
    for caller in 0..callers {
        for place in 0..limit {
            assert_eq!(gateway.request(rng.usize(..workers), caller), Some(true), "{place}");
        }
        assert_eq!(gateway.request(rng.usize(..workers), caller), Some(false));
        gateway.end_all(rng);
    }
    gateway.is_at_rest();
}

#[test]
fn never_one_too_many_nor_one_too_few() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..300 {
        let (workers, limit, callers) = (rng.usize(1..5), rng.usize(1..6), rng.usize(1..12));
        let gateway = Rc::new(Gateway::new(workers, limit, 1000, true));
        // Other workers do something between what one reads and what it writes.
        let mut others = rng.fork();
        let same = Rc::downgrade(&gateway);
        *gateway.data.before_swap.borrow_mut() = Some(Box::new(move |_, _| {
            let gateway = same.upgrade().unwrap();
            for _ in 0..others.usize(..3) {
                match others.bool() {
                    true => gateway.end(&mut others),
                    false => {
                        _ = gateway.request(others.usize(..workers), others.usize(..callers));
                    }
                }
            }
        }));
        for _ in 0..400 {
            act(&gateway, &mut rng, workers, callers);
        }
        *gateway.data.before_swap.borrow_mut() = None;
        nothing_is_left(&gateway, &mut rng, workers, callers, limit);
        admitted += gateway.admitted.get();
        refused += gateway.refused.get();
    }
    assert!(admitted > 20_000 && refused > 10_000, "too tame: {admitted}, {refused}");
}

/// Where there is no room for each caller some share their places, and none has more for it.
#[test]
fn newcomers_without_room_share_places_and_leave_none_behind() {
    let mut rng = Rng::with_seed(seed::next());
    let mut refused = 0;
    for _ in 0..10 {
        let (workers, limit) = (rng.usize(1..4), rng.usize(1..4));
        let gateway = Gateway::new(workers, limit, 1, false);
        for step in 0..3_000 {
            act(&gateway, &mut rng, workers, 100);
            // Now nearly all are in flight, now hardly any.
            match step / 100 % 2 {
                0 => _ = gateway.request(rng.usize(..workers), rng.usize(..100)),
                _ => gateway.end(&mut rng),
            }
        }
        nothing_is_left(&gateway, &mut rng, workers, 100, limit);
        refused += gateway.refused.get();
    }
    assert!(refused > 1_000, "too tame: {refused}");
}

/// Nobody comes for hours, and what is in flight still counts.
#[test]
fn long_requests_keep_their_places() {
    let gateway = Gateway::new(2, 2, 10, true);
    let mut rng = Rng::with_seed(seed::next());
    assert_eq!((gateway.request(0, 7), gateway.request(1, 7)), (Some(true), Some(true)));
    for _ in 0..100 {
        gateway.wait(60 * SECOND);
        assert_eq!((gateway.request(0, 7), gateway.request(1, 7)), (Some(false), Some(false)));
    }
    gateway.kill(1);
    gateway.wait(AGAIN);
    assert_eq!((gateway.request(1, 7), gateway.request(0, 7)), (Some(true), Some(false)));
    gateway.end_all(&mut rng);
}
