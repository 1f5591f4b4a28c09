//! Redis is away, or what comes back is not Redis.

use super::played::{Rule, answer, asks};
use super::{CONFIG, LEAVES, MILLISECOND, SECOND, ask, decide, host, of};
use host::call_out::Response;
use host::vm::Vm;
use host::{Host, Proxy};

/// Whether requests are decided about without Redis.
fn is_alone(vm: &mut Vm) -> bool {
    let stream = vm.open(&of("somebody")).unwrap();
    vm.answer(stream).is_admitted()
}

fn failures(host: &Host, name: &str) -> u64 {
    host.counter(&format!("diana.shop.fleet.failed.{name}")).unwrap_or_default()
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
fn a_call_that_the_host_forgets_holds_nobody_longer_than_the_timeout() {
    let mut host = host(20);
    let mut vm = host.start_vm(CONFIG).unwrap();
    let stream = ask(&mut vm, "ann");
    vm.run(19 * MILLISECOND);
    assert!(vm.answer(stream).is_held());
    vm.run(11 * MILLISECOND);
    assert!(vm.close(stream).unwrap().is_admitted());
}

#[test]
fn one_worker_finds_out_and_all_stop_asking_until_one_finds_the_way_back() {
    let mut host = host(21);
    let mut proxy = host.start_proxy(3, CONFIG).unwrap();
    for vm in &mut proxy.workers {
        let stream = ask(vm, "ann");
        decide(vm, Rule::ADMITS);
        vm.close(stream).unwrap();
    }
    let stream = ask(&mut proxy.workers[0], "bob");
    proxy.run(LEAVES);
    proxy.workers[0].answer_call_out(Response::new(504, "")).unwrap();
    proxy.run(SECOND / 10);
    assert!(proxy.workers[0].close(stream).unwrap().is_admitted());
    assert!(proxy.workers.iter_mut().all(is_alone));
    assert_eq!(failures(&host, "timeout"), 1);
    assert_eq!(host.gauge("diana.shop.mode.gateway"), Some(3));
    let probes = run_while_answered(&mut proxy, 3 * SECOND, &|_| Response::new(504, ""));
    assert!((2..=40).contains(&probes), "{probes} probes in three seconds");
    assert!(proxy.workers.iter_mut().all(is_alone));
    run_while_answered(&mut proxy, 2 * SECOND, &|asks| answer(asks, Rule::ADMITS));
    assert!(!proxy.workers.iter_mut().any(is_alone));
    assert_eq!(host.gauge("diana.shop.mode.fleet"), Some(3));
}

/// Lets time pass while whoever calls is answered at once. How many calls there were.
fn run_while_answered(
    proxy: &mut Proxy,
    ticks: u64,
    response: &dyn Fn(usize) -> Response,
) -> usize {
    let mut calls = 0;
    for _ in 0..ticks / MILLISECOND {
        proxy.run(MILLISECOND);
        for vm in &mut proxy.workers {
            while let Some(call) = vm.call_outs().first().cloned() {
                vm.answer_call_out(response(asks(&call))).unwrap();
                calls += 1;
            }
        }
    }
    calls
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

#[test]
fn everybody_alone_keeps_to_the_limit() {
    let mut host = host(23);
    let mut proxy = host
        .start_proxy(2, &CONFIG.replace("rpu: 100", "rpu: 10").replace("second", "hour"))
        .unwrap();
    let stream = ask(&mut proxy.workers[0], "ann");
    proxy.run(LEAVES);
    proxy.workers[0].answer_call_out(Response::reset()).unwrap();
    proxy.run(LEAVES);
    let mut admitted = usize::from(proxy.workers[0].close(stream).unwrap().is_admitted());
    for turn in 0..40 {
        admitted += usize::from(proxy.workers[turn % 2].request(&of("ann")).is_admitted());
    }
    assert_eq!(admitted, 10);
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
