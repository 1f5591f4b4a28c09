//! Which root calls Redis, for itself and for others, and what becomes of its calls when it ends.

use fastrand::Rng;

use super::{MILLISECOND, admits, answer_all, config, host, open, two_listeners};
use crate::fleet::played;
use host::call_out::Response;

#[test]
fn a_call_whose_root_ended_says_nothing_about_redis() {
    for silent in [false, true] {
        let mut host = host(50);
        let (mut vm, listeners) = two_listeners(&mut host);
        let streams = listeners.map(|root| open(&mut vm, root, "/far", "ann"));
        vm.run(2 * MILLISECOND);
        let gone = vm.call_outs()[0].root;
        assert!(vm.call_outs().iter().all(|call| call.root == gone), "one root calls for all");
        let stays = usize::from(listeners[0] == gone);
        vm.turn_to(listeners[stays]);
        vm.end_root(gone).unwrap();
        assert!(vm.answer(streams[stays]).is_held());
        // One call of the host to judge it anew, and one to ask.
        vm.run(4 * MILLISECOND);
        assert_eq!(vm.call_outs().len(), 1, "it is asked about once more");
        if silent {
            // What it waited for before is not forgotten.
            vm.run(24 * MILLISECOND);
            assert!(vm.close(streams[stays]).unwrap().is_admitted());
            continue;
        }
        answer_all(&mut vm, admits);
        vm.run(2 * MILLISECOND);
        assert!(vm.close(streams[stays]).unwrap().is_admitted());
        vm.run(40 * MILLISECOND);
        assert_eq!(host.counter("diana.shop.fleet.failed.timeout"), None);
        let next = open(&mut vm, listeners[stays], "/far", "bob");
        assert!(vm.answer(next).is_held(), "the gateway does not count alone");
    }
}

/// As long as requests come to it, whoever drains would always have a call out that nobody hears of once it ends.
#[test]
fn calls_leave_from_the_root_that_stays_the_longest() {
    let mut random = Rng::with_seed(kit::seed::next());
    let mut host = host(51);
    let (mut vm, mut listeners) = two_listeners(&mut host);
    for change in 2..40 {
        vm.configure(&config(change)).unwrap();
        let latest = vm.in_force();
        let old = std::mem::replace(&mut listeners[random.usize(..2)], latest);
        // What it has asked itself is answered while it drains.
        vm.run(MILLISECOND);
        answer_all(&mut vm, admits);
        let mut streams = Vec::new();
        for _ in 0..random.usize(10..40) {
            let root = [old, listeners[0], listeners[1]][random.usize(..3)];
            let path = ["/far", "/both"][random.usize(..2)];
            let stream = open(&mut vm, root, path, &format!("caller {}", random.u8(..9)));
            streams.extend((root != old).then_some(stream));
            vm.turn_to(root);
            vm.run(random.u64(..2 * MILLISECOND));
            let roots: Vec<u32> = vm.call_outs().iter().map(|call| call.root).collect();
            assert!(roots.iter().all(|root| *root == latest), "{roots:?} instead of {latest}");
            if !roots.is_empty() && random.bool() {
                let place = random.usize(..roots.len());
                let call = &vm.call_outs()[place];
                let is_short = call.body.windows(7).any(|word| word == b"EVALSHA");
                let response = match is_short && random.u8(..4) == 0 {
                    // Redis has started anew.
                    true => Response::new(200, "-NOSCRIPT No matching script.\r\n+OK\r\n"),
                    false => admits(played::asks(call)),
                };
                vm.answer_call_out_at(place, response).unwrap();
            }
        }
        vm.turn_to(listeners[0]);
        vm.end_root(old).unwrap();
        vm.run(40 * MILLISECOND);
        answer_all(&mut vm, admits);
        vm.run(40 * MILLISECOND);
        streams.into_iter().for_each(|stream| _ = vm.close(stream));
    }
    assert_eq!(host.counter("diana.shop.fleet.failed.lost"), None);
}
