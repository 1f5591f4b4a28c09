//! Rules from a configuration server, in the shipped module.

use host::call_out::Response;
use host::request::Request;
use host::vm::Vm;
use host::{Host, Proxy};

const SECOND: u64 = 1_000_000;

/// The gateway's own rules and a configuration server.
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
fn invalid_responses_cause_no_trap_and_keep_the_rules() {
    let mut host = host(2);
    let mut proxy = host.start_proxy(2, CONFIG).unwrap();
    // A gateway without a document soon polls again after a failure, at first.
    host.advance(30 * SECOND);
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
    assert!(
        log.iter().any(|line| line.contains("1:1 namespace: only allowed in the gateway")),
        "{log:?}"
    );
    assert_eq!(metric(&host, "applied"), 0);
    assert_eq!(admitted(&mut proxy.workers[0], 5), 1);
    host.advance(10 * SECOND);
    proxy.tick();
    answer(&mut proxy, &host, &Response::new(200, &document(3)));
    assert_eq!(admitted(&mut proxy.workers[0], 5), 2, "one of three was used before");
}

#[test]
fn headers_of_a_reset_call_are_not_read() {
    let mut vm = host(8).start_vm(CONFIG).unwrap();
    vm.fire();
    vm.start_counting();
    vm.answer_call_out(Response::reset()).unwrap();
    let (calls, _) = vm.counted();
    assert!(!calls.contains_key("proxy_get_header_map_value"), "{calls:?}");
}

#[test]
fn idle_check_for_new_rules_costs_two_reads() {
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
    // One of the rules, one of the documents in force.
    assert_eq!(reads, Some(2), "{calls:?}");
    assert!(!calls.contains_key("proxy_set_shared_data"), "{calls:?}");
    worker.start_counting();
    worker.fire();
    let (calls, _) = worker.counted();
    assert!(!calls.contains_key("proxy_get_shared_data"), "it was not time: {calls:?}");
}

/// The server returns a document, and all VMs apply it.
fn serve(host: &Host, proxy: &mut Proxy, text: &str) {
    host.advance(10 * SECOND);
    proxy.tick();
    assert_eq!(answer(proxy, host, &Response::new(200, text)), 1);
}

/// A preceding filter may hold a request while the rules change.
#[test]
fn request_held_by_another_filter_counts_under_new_rules() {
    let mut host = host(15);
    let mut vm = host.start_vm(CONFIG).unwrap();
    vm.fire();
    let late: Vec<u32> = (0..3).map(|_| vm.begin(&Request::get("/")).unwrap()).collect();
    vm.answer_call_out(Response::new(200, &document(3))).unwrap();
    // Under their original rules one request per day passes.
    late.iter().for_each(|&stream| vm.arrive(stream).unwrap());
    let outcomes: Vec<bool> = late.iter().map(|&stream| vm.answer(stream).is_admitted()).collect();
    assert_eq!(outcomes, [true, false, false]);
    assert_eq!(admitted(&mut vm, 9), 2, "one of three is used");
    late.iter().for_each(|&stream| drop(vm.close(stream).unwrap()));
    host.advance(SECOND);
    vm.fire();
    let count = |what: &str| host.counter(&format!("diana.shop.rule.r.{what}"));
    assert_eq!((count("allowed"), count("refused")), (Some(3), Some(9)));
    assert_eq!(host.gauge("diana.shop.rule.r.keys"), Some(1));
}

/// The number of documents after which the free blocks of a worker's memory fit further documents.
const SETTLED: usize = 320;

#[test]
fn many_documents_leave_no_memory_and_no_keys() {
    let mut host = host(16);
    let mut proxy = host.start_proxy(1, CONFIG).unwrap();
    let mut memory = Vec::new();
    let mut keys = Vec::new();
    for number in 0..SETTLED + 620 {
        serve(&host, &mut proxy, &many_rules(&format!("/{number}"), 0..50));
        memory.push(proxy.workers[0].memory());
        keys.push(host.shared_keys());
    }
    // Fragmentation may take one page more. A leak of 220 bytes per document would take two.
    let (before, after) = (memory[SETTLED], memory[memory.len() - 1]);
    assert!(after <= before + (1 << 16), "{before} before, {after} after");
    assert_eq!(keys[keys.len() - 1], keys[10], "{keys:?}");
}

/// Envoy keeps the metrics of a removed rule. The module may only keep their ids.
#[test]
fn removed_rules_keep_only_their_metric_ids() {
    let mut host = host(20);
    let mut proxy = host.start_proxy(1, CONFIG).unwrap();
    // For a rule without requests.
    const METRICS: usize = 2;
    let mut serve_next = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            serve(&host, &mut proxy, &many_rules("/", number * 200..(number + 1) * 200));
        }
        proxy.workers[0].memory()
    };
    let before = serve_next(0..22);
    // The table of ids grows in steps, so a shorter distance would show one or none of them.
    let growth = serve_next(22..62) - before;
    assert!(growth <= 8_000 * METRICS * 96, "{growth}");
}

/// A document with one rule per number.
fn many_rules(path: &str, numbers: std::ops::Range<u32>) -> String {
    let rule = |number| format!("{{name: r{number}, actor: device, unit: day, rpu: 5}}");
    let rules: Vec<String> = numbers.map(rule).collect();
    format!("limits: [{{Url: {path}, rules: [{}]}}]", rules.join(", "))
}
