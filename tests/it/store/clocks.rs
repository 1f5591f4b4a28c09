//! Wall clocks that are set back while state is dropped or moved.

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};

use kit::store::gateway::Gateway;
use kit::store::rule::Rule;

#[test]
fn check_uses_no_instant_before_the_watermark() {
    let gateway = Gateway::new(Rule::new("W", Quota::new(Unit::Second, 1)), 16, 1);
    gateway.set(900_000, 0);
    assert!((0..20).all(|caller| gateway.admits(caller)));
    gateway.set(SECOND, 0);
    assert!(gateway.admits(100), "who made room, since all the others have run out");
    // Back into a window without state: it does not start again.
    gateway.set(SECOND, SECOND / 2);
    assert!(gateway.admits(1), "in the window after it");
    gateway.set(SECOND * 3 / 2, SECOND / 2);
    assert!(!gateway.admits(1), "which has only one permit");
    gateway.set(SECOND * 5 / 2, SECOND / 2);
    assert!(gateway.admits(1));
}

#[test]
fn usage_moves_from_the_bucket_to_the_slot() {
    let gateway = Gateway::new(Rule::new("W", Quota::new(Unit::Minute, 1)), 16, 1);
    assert!((0..32).all(|caller| gateway.admits(caller)));
    gateway.set(50 * SECOND, 0);
    assert!(gateway.admits(100), "in a bucket");
    assert_eq!(gateway.overflowed.get(), 1);
    // Setting the clock back extends its window; the windows of the others have ended.
    gateway.set(61 * SECOND, 60 * SECOND);
    assert!(!gateway.admits(100));
    assert_eq!(gateway.overflowed.get(), 1, "there is room for him");
    gateway.set(111 * SECOND, 60 * SECOND);
    assert!(gateway.admits(100));
}
