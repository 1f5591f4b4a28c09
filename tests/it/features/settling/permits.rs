//! The law of a permit's charges: each is closed once, in the order of charging, for any sequence
//! of operations.

use std::rc::Rc;

use diana_policy::key::Key;
use diana_request::settling::{GrpcOutcome, HeaderUsage};
use diana_store::permit::{CancelQueue, End, OpenCharge, Permit};
use fastrand::Rng;
use kit::seed;

fn charge(rule: u32) -> OpenCharge {
    let key = Key { hash: rule.into(), second_hash: 0 };
    let (receipt, since, reserved, used) = (7, 9, 5, 0);
    let (header_usage, is_identified, is_degraded) = (HeaderUsage::Nothing, true, false);
    OpenCharge {
        key,
        receipt,
        since,
        reserved,
        used,
        rule,
        plan: 0,
        header_usage,
        grpc: GrpcOutcome::Other,
        is_identified,
        is_degraded,
    }
}

/// The rules of the closed charges, and the usage of each.
fn back(freed: &CancelQueue) -> Vec<(u32, u64)> {
    freed.take().into_iter().map(|charge| (charge.rule, charge.used)).collect()
}

#[test]
fn each_charge_is_closed_once() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..500 {
        let freed: Rc<CancelQueue> = Rc::default();
        let rules: Vec<u32> = (0..rng.u32(..6)).collect();
        let charges = rules.iter().map(|rule| charge(*rule));
        let mut permit = Permit::new(charges, &freed);
        permit.each(|charge| *charge = charge.with_used(3));
        assert_eq!(permit.is_none(), rules.is_empty());
        let of =
            |used: &dyn Fn(u32) -> u64| rules.iter().map(|rule| (*rule, used(*rule))).collect();
        let expected: Vec<(u32, u64)> = match rng.u8(..4) {
            0 => {
                permit.settle(|charge| u64::from(charge.rule) + charge.used);
                of(&|rule| u64::from(rule) + 3)
            }
            1 => {
                permit.finish(End::Served);
                Vec::new()
            }
            2 => {
                permit.finish(End::Left);
                of(&|_| 0)
            }
            _ => {
                drop(permit);
                of(&|_| 0)
            }
        };
        assert_eq!(back(&freed), expected);
        assert!(!freed.is_any());
    }
}

/// The number of rules for a request is only limited by the size of a document.
#[test]
fn many_charges_are_cancelled_in_order() {
    const MANY: u32 = 200_000;
    let freed: Rc<CancelQueue> = Rc::default();
    drop(Permit::new((0..MANY).map(charge), &freed));
    assert!(back(&freed).into_iter().eq((0..MANY).map(|rule| (rule, 0))));
    assert!(!freed.is_full());
}
