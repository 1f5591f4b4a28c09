//! The cost of bans, hot keys, daily quotas and Redis leases. Clients cannot forge the mark of a
//! hot key.

use std::collections::BTreeMap;

use super::{ALL_HEADERS, CLOCK, SECOND, accepted};
use host::Host;
use host::call_out::Response;
use host::request::Request;
use host::vm::Vm;
use kit::model::redis::Redis;

const MILLISECOND: u64 = SECOND / 1_000;

fn ban(scope: &str, rpu: u64) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{actor: device, unit: second, rpu: {rpu}, algo: W, scope: {scope}, \
         ban: {{after: 10, within: 1m, for: 1m, max: 1h}}}}]}}]"
    )
}

fn from(device: &str) -> Request {
    Request::get("/").header("x-device-id", device)
}

#[test]
fn ban_check_costs_no_host_call() {
    let mut host = Host::new(1);
    let mut vm = host.start_vm(&ban("local", 1)).unwrap();
    // One caller is banned, so that the set of banned callers is read.
    (0..20).for_each(|_| _ = vm.request(&from("eve")));
    vm.request(&from("ann"));
    vm.run(SECOND + SECOND / 100);
    vm.request(&from("bob"));
    let answer = vm.request(&from("ann"));
    assert!(answer.is_admitted());
    assert_eq!(answer.calls, BTreeMap::from([CLOCK, ALL_HEADERS]));
    let banned = vm.request(&from("eve"));
    assert_eq!(banned.retry_after(), Some(59));
    assert_eq!(banned.calls("clock_time_get"), 1);
    assert_eq!(banned.calls("proxy_get_shared_data"), 0);
}

#[test]
fn gateway_reads_bans_twenty_times_a_second() {
    let mut vm = Host::new(2).start_vm(&ban("gateway", 100_000)).unwrap();
    let mut reads = 0;
    for _ in 0..2_000 {
        vm.run(MILLISECOND);
        let answer = vm.request(&from("ann"));
        assert!(answer.is_admitted());
        reads += answer.calls("proxy_get_shared_data");
    }
    // Twenty per second, and fifty for leases.
    assert!((130..170).contains(&reads), "{reads}");
}

#[test]
fn daily_quota_costs_no_host_call() {
    let [with, without] = [", quota: {accounts: 20000, error: 0.0001}", ""].map(|quota| {
        let rule = format!("actor: device, unit: day, rpu: 3, algo: W, scope: local{quota}");
        accepted(&format!("[{{Url: /, rules: [{{{rule}}}]}}]"), &from("ann"))
    });
    assert_eq!(with.calls, without.calls);
    println!("{} of fuel, {} without", with.fuel, without.fuel);
    assert!(with.fuel < without.fuel + 3_000, "{}, and {} without", with.fuel, without.fuel);
}

/// At most one in a hundred requests of a busy caller waits, and one in ten makes a call or reads
/// shared data.
#[test]
fn lease_of_redis_is_spent_without_a_host_call() {
    let mut host = Host::new(3);
    host.add_cluster("redis");
    let rule = "actor: device, unit: second, rpu: 100000, algo: W, scope: global";
    let config = format!("redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{{rule}}}]}}]");
    let (mut vm, mut redis) = (host.start_vm(&config).unwrap(), Redis::default());
    let (mut calls_none, mut waited) = (0, 0);
    for number in 0..2_000 {
        vm.run(MILLISECOND);
        while let Some(call) = vm.call_outs().first().cloned() {
            let body = redis.answer(&call.body, host.clock().wall());
            let response = Response { body, ..Response::new(200, "") };
            vm.answer_call_out(response).unwrap();
        }
        let answer = vm.request(&from("ann"));
        if number >= 1_000 {
            waited += usize::from(answer.is_held());
            let asks = ["proxy_http_call", "proxy_get_shared_data"].map(|name| answer.calls(name));
            calls_none += usize::from(asks == [0, 0]);
        }
    }
    assert!(waited <= 10 && calls_none >= 900, "{waited} waited, {calls_none} made no call");
}

fn hot(actor: &str, scope: &str, algo: &str) -> String {
    format!(
        "limits:\n- Url: /api\n  except: {{paths: [/api/free]}}\n  rules: [{{name: r, actor: {actor}, \
         unit: second, rpu: 1000, algo: {algo}, scope: {scope}, \
         hot: {{over: 10, per: 1s, header: X-Hot-Key}}}}]"
    )
}

fn get(path: &str, caller: &str) -> Request {
    Request::get(path).header("x-account-id", caller)
}

/// The values of the mark that the upstream receives.
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
fn forged_hot_key_mark_is_removed() {
    for (actor, algo) in [("account", "TB"), ("device", "LB"), ("net", "SW")] {
        let mut host = Host::new(1);
        let config = hot(actor, "local", algo) + "\nactors: {net: [{client_address: {}}]}";
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
fn forged_mark_check_costs_at_most_one_host_call() {
    let calls = |actor: &str, scope: &str, is_hot: bool| {
        let mut host = Host::new(4);
        let mut config = hot(actor, scope, "W") + "\nactors: {net: [{client_address: {}}]}";
        if !is_hot {
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
fn hot_request_costs_two_more_host_calls() {
    let mut host = Host::new(5);
    let mut vm = host.start_vm(&hot("account", "local", "W")).unwrap();
    (0..12).for_each(|_| _ = vm.request(&get("/api", "ann")));
    vm.run(SECOND / 5);
    let calls = vm.request(&get("/api", "ann")).calls;
    let wanted = [
        ("clock_time_get", 1),
        ("proxy_add_header_map_value", 1),
        ("proxy_get_header_map_pairs", 1),
        // For a later filter in the chain.
        ("proxy_set_property", 1),
    ];
    assert_eq!(calls, BTreeMap::from(wanted));
}
