//! Redis is away, or what comes back is not Redis.

use super::played::{Rule, answer};
use super::{CONFIG, LEAVES, ask, host, of};
use host::Host;
use host::call_out::Response;
use host::vm::Vm;

/// Whether requests are decided about without Redis.
fn is_alone(vm: &mut Vm) -> bool {
    let stream = vm.open(&of("somebody")).unwrap();
    vm.answer(stream).is_admitted()
}

#[test]
fn whatever_comes_back_the_request_goes_on_and_nothing_traps() {
    let good = |asks| answer(asks, Rule::ADMITS).body;
    let bodies: [(&str, Vec<u8>); 8] = [
        ("nothing", Vec::new()),
        ("another protocol", b"220 smtp.example.com\r\n".into()),
        ("half of it", good(1)[..20].into()),
        ("twice", [good(1), good(1)].concat()),
        ("an answer to more", good(2)),
        ("an error", b"-LOADING Redis is loading the dataset in memory\r\n+OK\r\n".into()),
        ("huge numbers", b"*10\r\n:99999999999999999999\r\n+OK\r\n".into()),
        ("a deep array", b"*1\r\n".repeat(100_000)),
    ];
    let others = [Response::new(503, ""), Response::new(504, ""), Response::reset()];
    let bodies =
        bodies.into_iter().map(|(name, body)| (name, Response { body, ..Response::new(200, "") }));
    let all = bodies.chain(others.into_iter().map(|response| ("no answer", response)));
    for (seed, (name, response)) in (1..).zip(all) {
        let mut host = host(seed);
        let mut vm = host.start_vm(CONFIG).unwrap();
        let stream = ask(&mut vm, "ann");
        vm.run(LEAVES);
        vm.answer_call_out(response).unwrap_or_else(|trap| panic!("{name}: {trap}"));
        vm.run(LEAVES);
        assert!(vm.close(stream).unwrap().is_admitted(), "{name}");
        assert!(is_alone(&mut vm), "{name}");
    }
}

#[test]
fn a_cluster_that_the_host_does_not_know_holds_nobody() {
    let mut host = Host::new(22);
    let mut vm = host.start_vm(CONFIG).unwrap();
    let stream = vm.open(&of("ann")).unwrap();
    vm.run(LEAVES);
    assert!(vm.close(stream).unwrap().is_admitted());
    assert!(vm.log().iter().any(|line| line.contains("redis")), "{:?}", vm.log());
}

/// HTTP and gRPC callers learn that no limit is exceeded.
#[test]
fn unavailable_redis_is_answered_as_unavailable() {
    let closed = CONFIG.replace("scope: global", "scope: global, on_failure: deny");
    let mut host = host(24);
    let mut vm = host.start_vm(&format!("response: {{status: 429}}\n{closed}")).unwrap();
    let stream = ask(&mut vm, "ann");
    vm.run(LEAVES);
    vm.answer_call_out(Response::reset()).unwrap();
    vm.run(LEAVES);
    for answer in [vm.close(stream).unwrap(), vm.request(&of("ann"))] {
        assert_eq!((answer.status(), answer.retry_after()), (503, Some(1)));
        let [limited, left, policy] = ["x-envoy-ratelimited", "ratelimit", "ratelimit-policy"]
            .map(|name| answer.header(name));
        assert_eq!((limited, left, policy), (None, None, None));
        assert!(answer.filter_state["wasm.diana"].starts_with(b"unavailable rule=r "));
    }
    let grpc = vm.request(&of("ann").header("content-type", "application/grpc"));
    assert_eq!((grpc.status(), grpc.header("grpc-status")), (200, Some("14")));
    assert_eq!(grpc.header("grpc-message"), Some("rate limiter unavailable"));
}
