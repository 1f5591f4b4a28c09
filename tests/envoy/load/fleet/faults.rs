//! Faults of Redis and of the network to it.

use std::time::Duration;

use super::Fleet;
use super::measure::{Fault, RULES, TIMEOUT, measure, print_head};
use super::{GATEWAYS, gateway};
use crate::harness::{Fault as Wrong, PASSWORD};

type Act = dyn Fn(&mut Fleet);

#[test]
fn redis_faults_fail_no_request() {
    let mut fleet = Fleet::start_at_redis(TIMEOUT, RULES);
    fleet.load_until_together("/hot");
    print_head();
    let faults: [(&str, Option<&str>, &Act, &Act); 6] = [
        ("stopped (SIGSTOP)", Some("timeout"), &|it| it.redis.freeze(), &|it| it.redis.thaw()),
        ("killed, and started empty", Some("unreachable"), &|it| it.redis.kill(), &|it| {
            it.redis.restart()
        }),
        ("emptied", None, &|it| it.redis.flush(), &|_| {}),
        (
            "wants another password",
            Some("wrongpass"),
            &|it| it.redis.change_password("simsim"),
            &|it| it.redis.change_password(PASSWORD),
        ),
        (
            "became a replica",
            Some("readonly"),
            // The primary does not exist.
            &|it| it.redis.follow("127.0.0.1 1"),
            &|it| it.redis.follow("NO ONE"),
        ),
        ("its memory is full", Some("oom"), &|it| it.redis.configure("maxmemory", "1"), &|it| {
            it.redis.configure("maxmemory", "0")
        }),
    ];
    for (name, failure, begin, end) in faults {
        let losses = usize::from(name.contains("empt"));
        measure(&mut fleet, &Fault { name, losses, begin, end, failure });
    }
    fleet.assert_unharmed();
}

#[test]
fn network_faults_fail_no_request() {
    let mut fleet = Fleet::start_with(|port| gateway(TIMEOUT, RULES, port));
    fleet.load_until_together("/hot");
    print_head();
    let late = |ms| Wrong::Late(Duration::from_millis(ms));
    let set = |wrong: Wrong, count| {
        move |fleet: &mut Fleet| {
            fleet.wires[..count].iter_mut().for_each(|wire| wire.set(wrong.clone()));
        }
    };
    for (name, wrong, count, failure) in [
        ("slow, below the timeout", late(40), GATEWAYS, None),
        ("slow, above it", late(400), GATEWAYS, Some("timeout")),
        ("answers garbage", Wrong::Garbage("220 smtp.example.com\r\n"), GATEWAYS, Some("garbage")),
        ("closes half-way", Wrong::Short(40), GATEWAYS, Some("garbage")),
        ("refuses connections", Wrong::Refused, GATEWAYS, Some("unreachable")),
        ("cut off from one gateway", Wrong::Silent, 1, Some("timeout")),
    ] {
        let (begin, end) = (set(wrong, count), set(Wrong::None, count));
        measure(&mut fleet, &Fault { name, losses: 0, begin: &begin, end: &end, failure });
    }
    fleet.assert_unharmed();
}
