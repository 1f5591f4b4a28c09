//! Where there is no memory for one more, and what is told of a request that never came once more.

use super::{Open, World};
use crate::in_flight::reports::Sums;

/// There is no memory for one more, and this one has its place already.
#[test]
fn whoever_was_let_through_is_not_one_too_many() {
    let mut world = World::new("in_flight: 1000000");
    let mut open: Vec<Open> = (0..250_000).map_while(|_| world.request(0, "/", 1)).collect();
    assert!(open.len() == 250_000 && world.request(0, "/", 1).is_none());
    world.redirect(open.remove(0));
    assert!(world.request(0, "/else", 1).is_some());
}

/// What was reserved for a request that never came once more is told as what came back; a place is none of that.
#[test]
fn what_nobody_took_over_is_told() {
    let costs =
        "unit: day, rpu: 40, algo: W, cost: {response: {header: x-used}, reserve: 10, max: 10}";
    for (rule, told) in [("in_flight: 4", 0), (costs, 10)] {
        let mut world = World::new(rule);
        let open = world.request(0, "/", 1).expect("it fits");
        world.redirect(open);
        assert!(world.request(0, "/else", 2).is_some());
        let sums = Sums::default();
        world.workers[0].flush("n", &sums);
        assert_eq!(sums.of("diana.n.rule.all.refunded"), told, "{rule}");
        assert_eq!(sums.of("diana.n.rule.all.settled"), i64::from(told > 0), "{rule}");
    }
}
