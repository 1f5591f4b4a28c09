//! Faults of Redis, and of the way to it: no request fails, none waits long, the limit holds as
//! promised, and the fleet counts together again soon.

mod judged;
pub mod trial;

use std::time::Duration;

use super::Fleet;
use crate::harness::{Fault as Wrong, PASSWORD, alone};
pub use judged::print_head;
use trial::{Fault, RECOVERY, RULES, TIMEOUT, try_out};

/// Sets a fault on the wires of the first gateways.
fn wires(fault: Wrong, count: usize) -> impl Fn(&mut Fleet) {
    move |fleet| fleet.wires[..count].iter_mut().for_each(|wire| wire.set(fault.clone()))
}

#[test]
fn of_redis() {
    alone();
    let mut fleet = Fleet::start_at_redis(TIMEOUT, RULES);
    fleet.comes_together("/hot");
    print_head();
    let fault = |name, failure, begin, end| Fault {
        name,
        cut_off: 3,
        kept_from: 3,
        recovery: RECOVERY,
        emptied: 0,
        begin,
        end,
        failure,
    };
    try_out(
        &mut fleet,
        &fault("stopped (SIGSTOP)", Some("timeout"), &|fleet| fleet.redis.freeze(), &|fleet| {
            fleet.redis.thaw()
        }),
    );
    let killed = fault(
        "killed, and started empty",
        Some("unreachable"),
        &|fleet| fleet.redis.kill(),
        &|fleet| {
            fleet.redis.restart();
        },
    );
    try_out(&mut fleet, &Fault { emptied: 1, ..killed });
    let emptied = fault("emptied", None, &|fleet| fleet.redis.flush(), &|_| {});
    try_out(&mut fleet, &Fault { cut_off: 0, kept_from: 0, emptied: 1, ..emptied });
    try_out(
        &mut fleet,
        &fault(
            "wants another password",
            Some("wrongpass"),
            &|fleet| fleet.redis.change_password("simsim"),
            &|fleet| fleet.redis.change_password(PASSWORD),
        ),
    );
    try_out(
        &mut fleet,
        &fault(
            "became a replica",
            Some("readonly"),
            // Of nobody.
            &|fleet| fleet.redis.follow("127.0.0.1 1"),
            &|fleet| fleet.redis.follow("NO ONE"),
        ),
    );
    try_out(
        &mut fleet,
        &fault(
            "its memory is full",
            Some("oom"),
            &|fleet| fleet.redis.configure("maxmemory", "1"),
            &|fleet| fleet.redis.configure("maxmemory", "0"),
        ),
    );
    fleet.assert_unharmed();
}

#[test]
fn of_the_wire() {
    alone();
    let mut fleet = Fleet::start(TIMEOUT, RULES);
    fleet.comes_together("/hot");
    print_head();
    let late = |ms| Wrong::Late(Duration::from_millis(ms));
    for (name, wrong, cut_off, failure) in [
        ("slow, below the timeout", late(40), 0, None),
        ("slow, above it", late(400), 3, Some("timeout")),
        ("answers garbage", Wrong::Garbage("220 smtp.example.com\r\n"), 3, Some("garbage")),
        ("closes half-way", Wrong::Short(40), 3, Some("garbage")),
        ("closes at once", Wrong::Short(0), 3, Some("garbage")),
        ("refuses connections", Wrong::Refused, 3, Some("unreachable")),
        ("cut off from one gateway", Wrong::Silent, 1, Some("timeout")),
    ] {
        let count = if cut_off == 1 { 1 } else { 3 };
        let (begin, end) = (wires(wrong, count), wires(Wrong::None, count));
        let fault = Fault {
            name,
            cut_off,
            kept_from: cut_off,
            recovery: RECOVERY,
            emptied: 0,
            begin: &begin,
            end: &end,
            failure,
        };
        try_out(&mut fleet, &fault);
    }
    fleet.assert_unharmed();
}
