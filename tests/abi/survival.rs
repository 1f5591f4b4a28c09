//! What was used stays used: when a configuration changes, and when a VM dies.

use host::request::Request;
use host::vm::Vm;
use host::{Host, Proxy};

const SECOND: u64 = 1_000_000;
const ALGORITHMS: [&str; 3] = ["W", "SW", "TB"];

/// A rule for each value of `x-device-id`, on a unit long enough for nothing to come back.
fn config(scope: &str, algo: &str, rpu: u64, more: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{actor: device, unit: day, rpu: {rpu}, algo: {algo}, \
         scope: {scope}}}]}}]\n{more}"
    )
}

fn start(host: &mut Host, workers: usize, config: &str) -> Proxy {
    host.start_proxy(workers, config).unwrap_or_else(|error| panic!("{config}\n{error}"))
}

fn admitted(vm: &mut Vm, requests: usize) -> usize {
    let request = Request::get("/").header("x-device-id", "ann");
    (0..requests).filter(|_| vm.request(&request).is_admitted()).count()
}

#[test]
fn a_change_keeps_what_was_used_under_the_new_limit() {
    for (scope, algo) in ["local", "gateway"].iter().flat_map(|s| ALGORITHMS.map(|a| (s, a))) {
        let mut host = Host::new(1);
        let mut vm = host.start_vm(&config(scope, algo, 10, "")).unwrap();
        assert_eq!(admitted(&mut vm, 4), 4);
        for (rpu, more, left) in [
            (12, "response: {status: 429}", 8),
            (5, "except: {paths: [/healthz]}", 0),
            (14, "log: refused", 2),
            (20, "accepted: {headers: true}", 6),
        ] {
            vm.configure(&config(scope, algo, rpu, more)).unwrap();
            assert_eq!(admitted(&mut vm, 20), left, "{scope} {algo} {rpu}");
            vm.end_drain().unwrap();
        }
        let log = vm.log().join("\n");
        assert!(!log.contains("anew"), "{log}");
    }
}

#[test]
fn a_change_of_how_many_callers_there_is_room_for_keeps_what_was_used() {
    for (scope, algo) in ["local", "gateway"].iter().flat_map(|s| ALGORITHMS.map(|a| (s, a))) {
        for keys in [1, 1_000, 200_000] {
            let mut host = Host::new(2);
            let mut vm = host.start_vm(&config(scope, algo, 10, "keys: 100")).unwrap();
            assert_eq!(admitted(&mut vm, 4), 4);
            vm.configure(&config(scope, algo, 10, &format!("keys: {keys}"))).unwrap();
            assert_eq!(admitted(&mut vm, 20), 6, "{scope} {algo}: keys 100 to {keys}");
        }
    }
}

#[test]
fn a_rule_that_is_another_one_starts_anew_and_the_log_names_it() {
    for scope in ["local", "gateway"] {
        let mut host = Host::new(3);
        let mut vm = host.start_vm(&config(scope, "W", 3, "")).unwrap();
        for algo in ["SW", "TB", "SW, slices: 5"] {
            assert_eq!(admitted(&mut vm, 9), 3, "{scope} {algo}");
            let logged = vm.log().len();
            vm.configure(&config(scope, algo, 3, "")).unwrap();
            let log = vm.log().split_off(logged).join("\n");
            assert!(log.contains("start anew") && log.contains("root-device-day-"), "{log}");
        }
        assert_eq!(admitted(&mut vm, 9), 3);
    }
}

/// Rules that ended leave nothing but keys in shared data, and other roots that have them notice nothing.
#[test]
fn what_rules_leave_in_shared_data_is_emptied_when_it_has_run_out() {
    let config = |name: &str, more: &str| {
        format!(
            "keys: 1000\nlimits: [{{Url: /, rules: [{{name: {name}, actor: device, unit: minute, \
             rpu: 3, scope: gateway, ban: {{after: 2, within: 10s, for: 10s, max: 20s, \
             halve_after: 10s}}}}]}}]\n{more}"
        )
    };
    let crowd = |vm: &mut Vm| {
        let by = |caller: u32| Request::get("/").header("x-device-id", caller.to_string());
        (0..1_000).for_each(|caller| drop(vm.request(&by(caller))));
        (0..100).for_each(|caller| (0..9).for_each(|_| drop(vm.request(&by(caller)))));
    };
    let bytes = |host: &Host| host.shared_data().bytes();
    let mut host = Host::new(7);
    let mut vm = host.start_vm(&config("before", "")).unwrap();
    crowd(&mut vm);
    vm.run(SECOND);
    let full = bytes(&host);
    // Another root has the rule, too.
    let first = vm.in_force();
    vm.configure(&config("before", "log: refused")).unwrap();
    let second = vm.in_force();
    vm.end_root(first).unwrap();
    vm.run(200 * SECOND);
    assert!(bytes(&host) >= full, "it goes on");
    crowd(&mut vm);
    vm.configure(&config("after", "")).unwrap();
    vm.end_root(second).unwrap();
    vm.run(30 * SECOND);
    assert!(bytes(&host) >= full, "permits are still used, should the rule come back");
    vm.run(60 * SECOND);
    let keys = host.shared_keys();
    assert!(bytes(&host) < full / 8, "{} of {full}", bytes(&host));
    assert!(!vm.has_timer());
    // It may come back, and begins anew then.
    vm.configure(&config("before", "")).unwrap();
    vm.end_drain().unwrap();
    assert_eq!(admitted(&mut vm, 9), 3);
    assert!(host.shared_keys() <= keys + 2, "nothing new but a slot");
}

/// While the old root has streams it keeps its leases; when it ends it hands them in.
#[test]
fn blocks_of_the_rules_before_a_change_come_back() {
    for algo in ALGORITHMS {
        let mut host = Host::new(4);
        let mut proxy = start(&mut host, 2, &config("gateway", algo, 1_000, ""));
        let [one, two] = &mut proxy.workers[..] else { panic!("two workers") };
        let mut total = admitted(one, 100) + admitted(two, 100);
        for vm in [&mut *one, &mut *two] {
            vm.configure(&config("gateway", algo, 1_000, "log: refused")).unwrap();
            vm.end_drain().unwrap();
        }
        total += admitted(one, 2_000);
        assert_eq!(total, 1_000, "{algo}");
    }
}

#[test]
fn a_vm_that_dies_loses_nothing_but_its_leases() {
    for algo in ALGORITHMS {
        let mut host = Host::new(5);
        let config = config("gateway", algo, 1_000, "");
        let mut proxy = start(&mut host, 2, &config);
        let mut total = admitted(&mut proxy.workers[0], 300);
        // What it held when it died, at most an eighth of what was left, is never spent.
        proxy.workers[0] = host.start_vm(&config).unwrap();
        for _ in 0..4 {
            let vms = proxy.workers.iter_mut();
            total += vms.map(|vm| admitted(vm, 600)).sum::<usize>();
            proxy.run(2 * SECOND);
        }
        assert!((875..=1_000).contains(&total), "{algo}: {total}");
    }
}

#[test]
fn unspent_permits_of_an_idle_worker_go_to_the_others() {
    for algo in ALGORITHMS {
        let mut host = Host::new(6);
        let mut proxy = start(&mut host, 4, &config("gateway", algo, 1_000, ""));
        let mut total: usize = proxy.workers.iter_mut().map(|vm| admitted(vm, 50)).sum();
        proxy.run(2 * SECOND);
        assert!(!proxy.workers.iter_mut().any(Vm::has_timer), "no lease is out any more");
        total += admitted(&mut proxy.workers[0], 2_000);
        assert_eq!(total, 1_000, "{algo}");
    }
}
