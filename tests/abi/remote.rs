//! Rules from a configuration centre, with the shipped module.

mod changes;

use host::call_out::Response;
use host::request::Request;
use host::trap::StartError;
use host::vm::Vm;
use host::{Host, Proxy};

const SECOND: u64 = 1_000_000;

/// The gateway's own rules, and a centre.
const CONFIG: &str = "
limits: [{Url: /, rules: [{name: r, actor: all, unit: day, rpu: 1, algo: W, scope: local}]}]
remote: {cluster: centre, authority: config.example.com, path: '/rules?v=1', timeout: 250ms}
";

/// A document that admits `rpu` requests a day in each worker.
fn document(rpu: u64) -> String {
    CONFIG.lines().nth(1).unwrap().replace("rpu: 1", &format!("rpu: {rpu}"))
}

fn host(seed: u64) -> Host {
    let host = Host::new(seed);
    host.add_cluster("centre");
    host
}

/// Answers all open calls, then fires all timers. Returns the number of calls.
fn answer(proxy: &mut Proxy, host: &Host, response: &Response) -> usize {
    let mut answered = 0;
    for vm in proxy.vms() {
        while !vm.call_outs().is_empty() {
            vm.answer_call_out(response.clone()).unwrap();
            answered += 1;
        }
    }
    host.advance(SECOND / 4);
    proxy.tick();
    answered
}

fn admitted(vm: &mut Vm, requests: usize) -> usize {
    (0..requests).filter(|_| vm.request(&Request::get("/a")).is_admitted()).count()
}

fn metric(host: &Host, what: &str) -> u64 {
    host.counter(&format!("diana.shop.remote.{what}")).unwrap_or_default()
}

#[test]
fn one_vm_asks_and_all_apply() {
    let mut host = host(1);
    let mut proxy = host.start_proxy(3, CONFIG).unwrap_or_else(|error| panic!("{error}"));
    assert!(proxy.vms().all(|vm| vm.call_outs().is_empty()), "no call while it is configured");
    assert!(proxy.vms().all(|vm| vm.tick_period() == 1), "all come back at once");
    proxy.tick();
    let calls: Vec<_> = proxy.vms().flat_map(|vm| vm.call_outs().to_vec()).collect();
    assert_eq!(calls.len(), 1);
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    let wanted = [
        header(":method", "GET"),
        header(":path", "/rules?v=1"),
        header(":authority", "config.example.com"),
    ];
    assert_eq!(
        (calls[0].cluster.as_str(), calls[0].timeout, calls[0].headers.as_slice()),
        ("centre", 250, &wanted[..])
    );
    assert_eq!(answer(&mut proxy, &host, &Response::new(200, &document(3))), 1);
    for vm in &mut proxy.workers {
        assert_eq!(admitted(vm, 5), 3);
    }
    assert_eq!((metric(&host, "fetched"), metric(&host, "applied")), (1, 4));
    assert_eq!(host.gauge("diana.shop.remote.in_force"), Some(4));
    let log = proxy.log();
    let told: Vec<_> = log.iter().filter(|line| line.contains("goes into force")).collect();
    assert_eq!(told.len(), 1, "{log:?}");
    assert!(proxy.vms().all(|vm| (1..=250).contains(&vm.tick_period())));
    for _ in 0..40 {
        host.advance(SECOND / 4);
        proxy.tick();
    }
    assert_eq!(
        answer(&mut proxy, &host, &Response::new(200, &document(3))),
        1,
        "ten seconds later"
    );
    assert_eq!((metric(&host, "fetched"), metric(&host, "applied")), (2, 4));
}

#[test]
fn whatever_comes_back_nothing_traps_and_the_rules_stay() {
    let mut host = host(2);
    let mut proxy = host.start_proxy(2, CONFIG).unwrap();
    let huge = "#".repeat(10 << 20);
    let deep = "[".repeat(100_000);
    for (number, (response, is_rejected)) in [
        (Response::new(503, "upstream connect error"), false),
        (Response::new(504, "upstream request timeout"), false),
        (Response::new(404, ""), false),
        (Response::reset(), false),
        (Response { headers: Vec::new(), body: document(9).into() }, false),
        (Response { headers: vec![("a".into(), b"b".to_vec())], body: document(9).into() }, false),
        (Response { headers: vec![(":status".into(), b"\xff".to_vec())], body: Vec::new() }, false),
        (Response::new(200, ""), true),
        (Response::new(200, &huge), true),
        (Response::new(200, &deep), true),
        (Response { body: vec![0xff; 100], ..Response::new(200, "") }, true),
        (Response::new(200, "limits: [{Url: x, rules: []}]"), true),
        (Response::new(200, "namespace: x\nlimits: []"), true),
    ]
    .into_iter()
    .enumerate()
    {
        let before = metric(&host, "rejected");
        host.advance(10 * SECOND);
        proxy.tick();
        assert_eq!(answer(&mut proxy, &host, &response), 1, "{number}");
        assert_eq!(metric(&host, "rejected") - before, u64::from(is_rejected), "{number}");
        assert_eq!(metric(&host, "failed") + metric(&host, "rejected"), number as u64 + 1);
    }
    let log = proxy.log();
    assert!(log.iter().any(|line| line.contains("1:16 limits[0].Url: ")), "{log:?}");
    assert!(log.iter().any(|line| line.contains("1:1 namespace: belongs to")), "{log:?}");
    assert_eq!(metric(&host, "applied"), 0);
    assert_eq!(admitted(&mut proxy.workers[0], 5), 1);
    host.advance(10 * SECOND);
    proxy.tick();
    answer(&mut proxy, &host, &Response::new(200, &document(3)));
    assert_eq!(admitted(&mut proxy.workers[0], 5), 2, "one of three was used before");
}

#[test]
fn headers_that_are_not_there_are_not_asked_for() {
    let mut vm = host(8).start_vm(CONFIG).unwrap();
    vm.fire();
    vm.start_counting();
    vm.answer_call_out(Response::reset()).unwrap();
    let (calls, _) = vm.counted();
    assert!(!calls.contains_key("proxy_get_header_map_value"), "{calls:?}");
}

#[test]
fn a_centre_that_cannot_be_called_is_told_once() {
    for is_known in [false, true] {
        let mut host = Host::new(3);
        if is_known {
            host.empty_cluster("centre");
        }
        let mut proxy = host.start_proxy(2, CONFIG).unwrap();
        for _ in 0..20 {
            host.advance(SECOND / 4);
            proxy.tick();
        }
        let log = proxy.log();
        let wanted = if is_known { "no endpoint that could be asked" } else { "no such cluster" };
        assert_eq!(log.iter().filter(|line| line.contains(wanted)).count(), 1, "{log:?}");
        assert!(metric(&host, "failed") >= 4);
        host.add_cluster("centre");
        host.advance(SECOND);
        proxy.tick();
        answer(&mut proxy, &host, &Response::new(200, &document(2)));
        assert_eq!(admitted(&mut proxy.workers[1], 5), 2);
    }
}

#[test]
fn another_vm_goes_on_when_the_leader_is_gone() {
    let mut host = host(4);
    let mut proxy = host.start_proxy(3, CONFIG).unwrap();
    proxy.tick();
    assert_eq!(proxy.main.call_outs().len(), 1, "the main thread may lead");
    // Only the others tick from now on.
    host.advance(2 * SECOND);
    proxy.workers.iter_mut().for_each(Vm::fire);
    let asking: Vec<usize> = proxy.workers.iter_mut().map(|vm| vm.call_outs().len()).collect();
    assert_eq!(asking, [1, 0, 0]);
    proxy.workers[0].answer_call_out(Response::new(200, &document(3))).unwrap();
    // An answer that comes too late changes nothing.
    proxy.main.answer_call_out(Response::new(200, &document(7))).unwrap();
    host.advance(SECOND / 4);
    proxy.tick();
    assert_eq!(admitted(&mut proxy.workers[2], 9), 3);
    assert_eq!((metric(&host, "fetched"), metric(&host, "applied")), (1, 4));
}

#[test]
fn headers_come_from_the_environment() {
    let config = CONFIG.replace("timeout", "headers: {authorization: {env: DIANA_TOKEN}}, timeout");
    let mut host = host(5);
    match host.start_vm(&config) {
        Err(StartError::Refused(log)) => {
            let log = log.join("\n");
            assert!(log.contains("remote.headers.authorization.env: no such variable"), "{log}");
        }
        _ => panic!("a configuration without its secret is refused"),
    }
    host.set_environment("DIANA_TOKEN", "Bearer abc");
    let mut vm = host.start_vm(&config).unwrap();
    vm.fire();
    let headers = &vm.call_outs()[0].headers;
    assert!(headers.contains(&("authorization".into(), b"Bearer abc".to_vec())), "{headers:?}");
}

#[test]
fn looking_costs_one_small_read() {
    let mut host = host(6);
    let mut proxy = host.start_proxy(2, CONFIG).unwrap();
    proxy.tick();
    answer(&mut proxy, &host, &Response::new(200, &document(3)));
    host.advance(SECOND / 4);
    proxy.tick();
    let worker = &mut proxy.workers[1];
    worker.start_counting();
    host.advance(SECOND / 4);
    worker.fire();
    let (calls, _) = worker.counted();
    let reads = calls.get("proxy_get_shared_data").copied();
    assert_eq!(reads, Some(1), "{calls:?}");
    assert!(!calls.contains_key("proxy_set_shared_data"), "{calls:?}");
    worker.start_counting();
    worker.fire();
    let (calls, _) = worker.counted();
    assert!(!calls.contains_key("proxy_get_shared_data"), "it was not time: {calls:?}");
}

#[test]
fn without_a_centre_nothing_of_this_happens() {
    let mut host = host(7);
    let mut vm = host.start_vm(&document(3)).unwrap();
    assert_eq!(vm.tick_period(), 0);
    vm.fire();
    assert!(vm.call_outs().is_empty());
}
