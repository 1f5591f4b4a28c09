//! Hot callers: whose requests are marked, and that nobody else's are.

use std::collections::BTreeMap;

use host::Host;
use host::request::Request;
use host::vm::Vm;

const SECOND: u64 = 1_000_000;

fn config(actor: &str, scope: &str, algo: &str) -> String {
    format!(
        "limits:\n- Url: /api\n  except: {{paths: [/api/free]}}\n  rules: [{{name: r, actor: {actor}, \
         unit: second, rpu: 1000, algo: {algo}, scope: {scope}, \
         hot: {{over: 10, per: 1s, header: X-Hot-Key}}}}]"
    )
}

fn get(path: &str, caller: &str) -> Request {
    Request::get(path).header("x-account-id", caller)
}

/// The values of the mark that the upstream gets.
fn marks(vm: &mut Vm, request: &Request) -> Vec<String> {
    let stream = vm.open(request).unwrap();
    let headers = vm.upstream_headers(stream);
    vm.run(2 * SECOND / 1000);
    vm.close(stream).unwrap();
    let marks = headers.into_iter().filter(|(name, _)| name == "x-hot-key");
    marks.map(|(_, value)| String::from_utf8(value).unwrap()).collect()
}

fn forged(request: Request) -> Request {
    request.header("X-Hot-Key", "r").header("x-hot-KEY", "").header("x-hot-key", "r, r")
}

#[test]
fn a_forged_mark_reaches_nobody() {
    for (actor, algo) in [("account", "TB"), ("device", "LB"), ("net", "SW")] {
        let mut host = Host::new(1);
        let config = config(actor, "local", algo) + "\nactors: {net: [{client_address: {}}]}";
        let mut vm = host.start_vm(&config).unwrap_or_else(|e| panic!("{e}"));
        for path in ["/", "/api", "/api/free", "/api/x", "/api/../other", "*"] {
            for request in [get(path, "ann"), Request::get(path)] {
                assert_eq!(marks(&mut vm, &forged(request)), [""; 0], "{actor} {path}");
            }
        }
        assert_eq!(marks(&mut vm, &forged(Request::get("/").without(":path"))), [""; 0]);
    }
}

#[test]
fn a_hot_caller_is_marked_with_the_rule_s_name_only() {
    for scope in ["local", "gateway", "global"] {
        let mut host = Host::new(2);
        let mut vm = host.start_vm(&config("account", scope, "TB")).unwrap();
        for _ in 0..12 {
            assert_eq!(marks(&mut vm, &get("/api", "ann")), [""; 0]);
        }
        vm.run(SECOND / 5);
        assert_eq!(marks(&mut vm, &forged(get("/api", "ann"))), ["r"], "{scope}");
        assert_eq!(marks(&mut vm, &get("/api", "bob")), [""; 0]);
        assert_eq!(marks(&mut vm, &get("/api/free", "ann")), [""; 0]);
        assert_eq!(marks(&mut vm, &get("/other", "ann")), [""; 0]);
        vm.run(SECOND / 5);
        assert_eq!(host.counter("diana.shop.rule.r.hot"), Some(1));
        assert_eq!(host.gauge("diana.shop.rule.r.hot_keys"), Some(1));
        vm.run(3 * SECOND);
        assert_eq!(host.gauge("diana.shop.rule.r.hot_keys"), Some(0));
        assert!(!vm.has_timer(), "nobody is hot, nothing to do");
        assert_eq!(marks(&mut vm, &get("/api", "ann")), [""; 0]);
    }
}

#[test]
fn a_request_that_waits_for_its_turn_is_marked() {
    let mut host = Host::new(3);
    let config = config("account", "local", "LB").replace("rpu: 1000", "rpu: 50");
    let mut vm = host.start_vm(&config).unwrap();
    for _ in 0..12 {
        vm.open(&get("/api", "ann")).unwrap();
    }
    vm.run(SECOND / 5);
    let first = vm.open(&forged(get("/api", "ann"))).unwrap();
    assert!(vm.answer(first).is_held());
    vm.run(SECOND);
    assert!(vm.answer(first).is_admitted());
    let marks = vm.upstream_headers(first).into_iter().filter(|(name, _)| name == "x-hot-key");
    assert_eq!(marks.map(|(_, value)| value).collect::<Vec<_>>(), [b"r"]);
}

#[test]
fn looking_for_a_mark_costs_nothing_where_headers_are_read_and_one_look_where_they_are_not() {
    let calls = |actor: &str, scope: &str, hot: bool| {
        let mut host = Host::new(4);
        let mut config = config(actor, scope, "W") + "\nactors: {net: [{client_address: {}}]}";
        if !hot {
            config = config.replace(", hot: {over: 10, per: 1s, header: X-Hot-Key}", "");
        }
        let mut vm = host.start_vm(&config).unwrap();
        (0..3).for_each(|_| _ = vm.request(&get("/api", "ann")));
        vm.run(SECOND / 1000);
        vm.request(&get("/api", "ann")).calls
    };
    let header = "proxy_get_header_map_value";
    for scope in ["local", "gateway"] {
        assert_eq!(calls("account", scope, true), calls("account", scope, false), "{scope}");
        let mut with = calls("net", scope, true);
        *with.get_mut(header).unwrap() -= 1;
        assert_eq!(with, calls("net", scope, false), "{scope}");
    }
}

#[test]
fn a_hot_request_costs_one_call_more() {
    let mut host = Host::new(5);
    let mut vm = host.start_vm(&config("account", "local", "W")).unwrap();
    (0..12).for_each(|_| _ = vm.request(&get("/api", "ann")));
    vm.run(SECOND / 5);
    let calls = vm.request(&get("/api", "ann")).calls;
    let wanted = [
        ("clock_time_get", 1),
        ("proxy_get_header_map_pairs", 1),
        ("proxy_replace_header_map_value", 1),
    ];
    assert_eq!(calls, BTreeMap::from(wanted));
}

#[test]
fn workers_count_together_and_one_of_them_tells_it() {
    for (scope, lists) in [("gateway", 1), ("local", 3)] {
        let mut host = Host::new(6);
        let mut proxy = host.start_proxy(3, &config("account", scope, "TB")).unwrap();
        // A second of 16 in each worker, or of 5 where they count together.
        let each = if scope == "local" { 16 } else { 5 };
        for _ in 0..each {
            for vm in &mut proxy.workers {
                vm.request(&get("/api", "ann"));
                vm.request(&get("/other", "ann"));
            }
            proxy.run(SECOND / 100);
        }
        proxy.run(SECOND / 4);
        for vm in &mut proxy.workers {
            assert_eq!(marks(vm, &get("/api", "ann")), ["r"], "{scope}");
        }
        proxy.run(SECOND / 5);
        let keys = if scope == "local" { 3 } else { 1 };
        assert_eq!(host.gauge("diana.shop.rule.r.hot_keys"), Some(keys), "{scope}");
        let lines: Vec<String> = proxy.workers.iter().flat_map(Vm::log).collect();
        let lines: Vec<&String> = lines.iter().filter(|line| line.contains("hot rule=r")).collect();
        assert_eq!(lines.len(), lists, "{lines:?}");
        let shown = format!("hot rule=r scope={scope} over=10 per=1s keys=1 requests=");
        assert!(lines.iter().all(|line| line.contains(&shown)), "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains("ann")), "{lines:?}");
        assert!(proxy.main.log().iter().all(|line| !line.contains("hot rule")));
        proxy.run(3 * SECOND);
        assert_eq!(host.gauge("diana.shop.rule.r.hot_keys"), Some(0), "{scope}");
    }
}

#[test]
fn a_new_configuration_takes_its_own_marks_off_only() {
    let mut host = Host::new(7);
    let mut vm = host.start_vm(&config("account", "gateway", "TB")).unwrap();
    (0..12).for_each(|_| _ = vm.request(&get("/api", "ann")));
    vm.run(SECOND / 5);
    assert_eq!(host.gauge("diana.shop.rule.r.hot_keys"), Some(1));
    vm.configure("limits: []").unwrap();
    assert_eq!(marks(&mut vm, &forged(get("/api", "ann"))).len(), 3, "nobody marks requests");
    vm.end_drain().unwrap();
    assert_eq!(host.gauge("diana.shop.rule.r.hot_keys"), Some(0));
}
