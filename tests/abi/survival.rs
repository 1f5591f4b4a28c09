//! What was used stays used: when a configuration changes, and when a VM dies.

use host::Host;
use host::request::Request;
use host::vm::Vm;

const SECOND: u64 = 1_000_000;

/// A rule for each value of `x-device-id`, on a unit long enough for nothing to come back.
fn config(scope: &str, algo: &str, rpu: u64, more: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{actor: device, unit: day, rpu: {rpu}, algo: {algo}, \
         scope: {scope}}}]}}]\n{more}"
    )
}

fn admitted(vm: &mut Vm, requests: usize) -> usize {
    let request = Request::get("/").header("x-device-id", "ann");
    (0..requests).filter(|_| vm.request(&request).is_admitted()).count()
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
