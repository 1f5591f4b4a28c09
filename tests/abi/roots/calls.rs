//! A root ends while calls to Redis are out that it made, for itself and for others.

use super::{MILLISECOND, admits, answer_all, host, open, two_listeners};

#[test]
fn a_call_whose_root_ended_says_nothing_about_redis() {
    for silent in [false, true] {
        let mut host = host(50);
        let (mut vm, listeners) = two_listeners(&mut host);
        let streams = listeners.map(|root| open(&mut vm, root, "/far", "ann"));
        vm.run(2 * MILLISECOND);
        let gone = vm.call_outs()[0].root;
        assert!(
            vm.call_outs().iter().all(|call| call.root == gone),
            "whoever is called first calls"
        );
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
