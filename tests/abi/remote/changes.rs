//! What a change of the rules leaves as it was.

use super::{CONFIG, SECOND, admitted, answer, document, host, metric};
use host::call_out::Response;
use host::request::Request;
use host::vm::Vm;
use host::{Host, Proxy};

/// Lets the centre serve a document, and all apply it.
fn serve(host: &Host, proxy: &mut Proxy, text: &str) {
    host.advance(10 * SECOND);
    proxy.tick();
    assert_eq!(answer(proxy, host, &Response::new(200, text)), 1);
}

#[test]
fn usage_survives() {
    for scope in ["local", "gateway"] {
        let mut host = host(11);
        let config = CONFIG.replace("local", scope);
        let mut proxy = host.start_proxy(1, &config).unwrap();
        let text = |rpu| document(rpu).replace("local", scope);
        assert_eq!(admitted(&mut proxy.workers[0], 1), 1);
        serve(&host, &mut proxy, &text(3));
        assert_eq!(admitted(&mut proxy.workers[0], 9), 2, "{scope}");
        serve(&host, &mut proxy, &text(10));
        assert_eq!(admitted(&mut proxy.workers[0], 20), 7, "{scope}");
        serve(&host, &mut proxy, &text(4));
        assert_eq!(admitted(&mut proxy.workers[0], 20), 0, "{scope}");
        serve(&host, &mut proxy, &text(20).replace("name: r,", "name: other,"));
        assert_eq!(admitted(&mut proxy.workers[0], 30), 20, "{scope}");
        let log = proxy.log();
        let anew: Vec<_> = log.iter().filter(|line| line.contains("start anew")).collect();
        assert_eq!(anew.len(), 1, "{log:?}");
        assert!(anew[0].ends_with(": other"), "{anew:?}");
        host.advance(SECOND);
        proxy.tick();
        let count = |rule: &str| host.counter(&format!("diana.shop.rule.{rule}.allowed"));
        assert_eq!((count("r"), count("other")), (Some(10), Some(20)), "none was lost");
    }
}

#[test]
fn a_fresh_vm_begins_with_the_last_good_rules() {
    let mut host = host(12);
    let mut proxy = host.start_proxy(2, CONFIG).unwrap();
    serve(&host, &mut proxy, &document(3).replace("name: r,", "name: theirs,"));
    serve(&host, &mut proxy, "limits: oops");
    let mut fresh = host.start_vm(CONFIG).unwrap();
    assert_eq!(admitted(&mut fresh, 9), 3);
    fresh.fire();
    let mut logged = fresh.log();
    // The same with another configuration that asks for the same document.
    let changed = CONFIG.replace("250ms", "500ms").replace("rpu: 1", "rpu: 2");
    let mut fresh = host.start_vm(&changed).unwrap();
    assert_eq!(admitted(&mut fresh, 9), 3);
    assert_eq!(metric(&host, "applied"), 3, "none of them was news");
    logged.extend(fresh.log());
    assert!(!logged.iter().any(|line| line.contains("start anew")), "{logged:?}");
}

#[test]
fn a_changed_configuration_keeps_rules_and_usage_while_the_old_one_drains() {
    let mut host = host(13);
    let mut vm = host.start_vm(CONFIG).unwrap();
    vm.fire();
    vm.answer_call_out(Response::new(200, &document(5))).unwrap();
    assert_eq!(admitted(&mut vm, 2), 2);
    host.advance(1);
    vm.configure(&CONFIG.replace("250ms", "500ms")).unwrap();
    assert_eq!(admitted(&mut vm, 9), 3);
    // The new root takes the lead from the old one.
    vm.fire();
    let calls = vm.call_outs();
    assert_eq!((calls.len(), calls[0].timeout), (1, 500));
    assert_eq!(host.gauge("diana.shop.remote.in_force"), Some(1), "the old one was not due");
    host.advance(SECOND / 4);
    vm.fire();
    assert_eq!(host.gauge("diana.shop.remote.in_force"), Some(2));
    vm.end_drain().unwrap();
    assert_eq!(host.gauge("diana.shop.remote.in_force"), Some(1));
    vm.answer_call_out(Response::new(200, &document(7))).unwrap();
    assert_eq!(admitted(&mut vm, 9), 2);
}

/// A rule that holds: one request at once, the next ones 100 ms apart.
fn holding(name: &str, more: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{more}{{name: {name}, actor: all, unit: second, rpu: 10, \
         algo: LB, max_delay: 5s, scope: local}}]}}]\n"
    )
}

/// Lets time pass in ticks of a millisecond until nobody waits, and returns who went on when.
fn drain(host: &Host, vm: &mut Vm, streams: &[u32]) -> Vec<(u32, u64)> {
    let start = host.clock().monotonic();
    let mut gone = Vec::new();
    while gone.len() < streams.len() && host.clock().monotonic() < start + 5 * SECOND {
        host.advance(SECOND / 1000);
        assert!(vm.tick_period() > 0, "somebody waits");
        vm.fire();
        for &stream in streams {
            if vm.answer(stream).is_admitted() && !gone.iter().any(|(known, _)| *known == stream) {
                gone.push((stream, (host.clock().monotonic() - start) / 1000));
            }
        }
    }
    gone
}

#[test]
fn who_waits_goes_on_in_time_although_the_rules_change() {
    for other in [
        "",
        "{name: first, actor: all, unit: day, rpu: 100, algo: LB, max_delay: 20s, scope: local}, ",
    ] {
        let mut host = host(14);
        let centre = CONFIG.lines().nth(2).unwrap();
        let mut vm = host.start_vm(&(holding("line", "") + centre)).unwrap();
        assert!(vm.request(&Request::get("/")).is_admitted());
        let held: Vec<u32> = (0..4).map(|_| vm.open(&Request::get("/")).unwrap()).collect();
        vm.fire();
        // The rule keeps its line, and gets another number among the rules.
        let text = holding("line", &other.replace("rpu: 100", "rpu: 1000000000"));
        vm.answer_call_out(Response::new(200, &text)).unwrap();
        // One of those that wait leaves, and a newcomer comes in behind the others.
        assert!(!vm.close(held[1]).unwrap().is_admitted());
        let late = vm.open(&Request::get("/")).unwrap();
        let streams = [held[0], held[2], held[3], late];
        let gone = drain(&host, &mut vm, &streams);
        assert_eq!(gone.iter().map(|(stream, _)| *stream).collect::<Vec<_>>(), streams);
        let times: Vec<u64> = gone.iter().map(|(_, time)| *time).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 99), "{times:?}");
        assert!(times[3] <= 502, "{times:?}");
    }
}

#[test]
fn gauges_are_right_however_often_the_rules_change() {
    let mut host = host(20);
    let mut proxy = host.start_proxy(2, CONFIG).unwrap();
    let global = |rpu: u64| document(rpu).replace("local", "global");
    for rpu in 3..6 {
        serve(&host, &mut proxy, &global(rpu));
        proxy.vms().for_each(|vm| drop(vm.request(&Request::get("/"))));
        host.advance(SECOND);
        proxy.tick();
        assert_eq!(host.gauge("diana.shop.mode.gateway"), Some(3), "{:?}", host.metrics());
    }
    serve(&host, &mut proxy, &document(3));
    assert_eq!(host.gauge("diana.shop.mode.gateway"), Some(0));
}

#[test]
fn who_waits_under_an_old_rule_does_not_give_his_place_to_one_under_another() {
    let mut host = host(18);
    let centre = CONFIG.lines().nth(2).unwrap();
    let mut vm = host.start_vm(&(holding("line", "") + centre)).unwrap();
    vm.fire();
    assert!(vm.request(&Request::get("/")).is_admitted());
    let old: Vec<u32> = (0..2).map(|_| vm.open(&Request::get("/")).unwrap()).collect();
    let text = holding("other", "").replace("rpu: 10,", "rpu: 1, max_queue: 9,");
    vm.answer_call_out(Response::new(200, &text)).unwrap();
    assert!(vm.request(&Request::get("/")).is_admitted());
    let new: Vec<u32> = (0..2).map(|_| vm.open(&Request::get("/")).unwrap()).collect();
    assert!(!vm.close(old[0]).unwrap().is_admitted());
    let gone = drain(&host, &mut vm, &[old[1], new[0], new[1]]);
    let (streams, times): (Vec<u32>, Vec<u64>) = gone.into_iter().unzip();
    assert_eq!(streams, [old[1], new[0], new[1]]);
    assert!(times[0] <= 102, "he moves up: {times:?}");
    assert!(times[1] >= 999 && times[2] >= 1_999, "they do not: {times:?}");
}

#[test]
fn what_was_counted_is_handed_over_while_streams_of_the_old_rules_are_open() {
    let mut host = host(19);
    let mut vm = host.start_vm(CONFIG).unwrap();
    vm.fire();
    let open = vm.open(&Request::get("/")).unwrap();
    vm.answer_call_out(Response::new(200, &document(3))).unwrap();
    assert_eq!(host.counter("diana.shop.rule.r.allowed"), Some(1));
    assert_eq!(vm.close(open).unwrap().status(), 200);
}

/// A filter in front may hold a request while the rules change.
#[test]
fn a_request_that_arrives_late_is_judged_with_the_others_and_counted() {
    let mut host = host(15);
    let mut vm = host.start_vm(CONFIG).unwrap();
    vm.fire();
    let late: Vec<u32> = (0..3).map(|_| vm.begin(&Request::get("/")).unwrap()).collect();
    vm.answer_call_out(Response::new(200, &document(3))).unwrap();
    // Under the rules that they began under one request passes in a day.
    late.iter().for_each(|&stream| vm.arrive(stream).unwrap());
    let fates: Vec<bool> = late.iter().map(|&stream| vm.answer(stream).is_admitted()).collect();
    assert_eq!(fates, [true, false, false]);
    assert_eq!(admitted(&mut vm, 9), 2, "one of three is used");
    late.iter().for_each(|&stream| drop(vm.close(stream).unwrap()));
    host.advance(SECOND);
    vm.fire();
    let count = |what: &str| host.counter(&format!("diana.shop.rule.r.{what}"));
    assert_eq!((count("allowed"), count("refused")), (Some(3), Some(9)));
    assert_eq!(host.gauge("diana.shop.rule.r.keys"), Some(1));
}

/// A rule that holds goes on holding for a request that arrives late.
#[test]
fn a_request_that_arrives_late_is_held_and_let_go() {
    let mut host = host(17);
    let centre = CONFIG.lines().nth(2).unwrap();
    let mut vm = host.start_vm(&(holding("line", "") + centre)).unwrap();
    vm.fire();
    let late: Vec<u32> = (0..3).map(|_| vm.begin(&Request::get("/")).unwrap()).collect();
    vm.answer_call_out(Response::new(200, "limits: []")).unwrap();
    late.iter().for_each(|&stream| vm.arrive(stream).unwrap());
    assert!(vm.answer(late[0]).is_admitted() && !vm.answer(late[1]).is_admitted());
    let gone = drain(&host, &mut vm, &late[1..]);
    assert_eq!(gone.len(), 2, "{gone:?}");
}

/// Documents after which the free blocks of a worker's memory have the sizes that the next documents need.
const SETTLED: usize = 320;

#[test]
fn many_documents_leave_neither_memory_nor_keys_behind() {
    let mut host = host(16);
    let mut proxy = host.start_proxy(1, CONFIG).unwrap();
    let mut memory = Vec::new();
    let mut keys = Vec::new();
    for number in 0..SETTLED + 620 {
        serve(&host, &mut proxy, &many_rules(&format!("/{number}"), 0..50));
        memory.push(proxy.workers[0].memory());
        keys.push(host.shared_keys());
    }
    // One page more is allowed, by the places of free blocks. A leak of 220 bytes for each document takes two.
    let (before, after) = (memory[SETTLED], memory[memory.len() - 1]);
    assert!(after <= before + (1 << 16), "{before} before, {after} after");
    assert_eq!(keys[keys.len() - 1], keys[10], "{keys:?}");
}

/// Envoy keeps the metrics of a rule that is gone, so what they are known by is all that may stay here.
#[test]
fn names_of_rules_that_are_gone_take_no_more_than_the_ids_of_their_metrics() {
    let mut host = host(20);
    let mut proxy = host.start_proxy(1, CONFIG).unwrap();
    // Of a rule without requests.
    const METRICS: usize = 2;
    let mut serve_next = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            serve(&host, &mut proxy, &many_rules("/", number * 200..(number + 1) * 200));
        }
        proxy.workers[0].memory()
    };
    let before = serve_next(0..22);
    let growth = serve_next(22..42) - before;
    assert!(growth <= 4_000 * METRICS * 64, "{growth}");
}

/// A document with one rule of each of these numbers.
fn many_rules(path: &str, numbers: std::ops::Range<u32>) -> String {
    let rule = |number| format!("{{name: r{number}, actor: device, unit: day, rpu: 5}}");
    let rules: Vec<String> = numbers.map(rule).collect();
    format!("limits: [{{Url: {path}, rules: [{}]}}]", rules.join(", "))
}
