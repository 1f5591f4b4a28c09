//! Several VMs, and several configurations in one of them.

use host::Host;
use host::answer::Fate;
use host::request::Request;

const SECOND: u64 = 1_000_000;

/// A rule that admits `rpu` requests a day.
fn config(rpu: u64) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: all, unit: day, rpu: {rpu}, algo: W, \
         scope: local}}]}}]"
    )
}

#[test]
fn local_usage_is_each_workers_own() {
    let mut host = Host::new(1);
    let mut proxy = host.start_proxy(3, &config(4)).unwrap_or_else(|error| panic!("{error}"));
    for vm in &mut proxy.workers {
        let admitted = (0..10).filter(|_| vm.request(&Request::get("/")).is_admitted()).count();
        assert_eq!(admitted, 4);
    }
    proxy.run(2 * SECOND);
    assert_eq!(host.counter("diana.shop.rule.r.allowed"), Some(12));
    assert_eq!(host.counter("diana.shop.rule.r.refused"), Some(18));
    assert_eq!(host.gauge("diana.shop.rule.r.keys"), Some(3), "one caller in each worker");
}

#[test]
fn an_accepted_configuration_is_counted_once_however_many_vms_get_it() {
    let mut host = Host::new(2);
    let proxy = host.start_proxy(3, &config(4)).unwrap();
    assert_eq!(host.counter("diana.shop.config.accepted"), Some(1), "{:?}", host.metrics());
    let lines = proxy.workers.iter().chain([&proxy.main]).map(|vm| vm.log().len()).sum::<usize>();
    assert_eq!(lines, 0, "only the VM that validated said so");
    host.start_proxy(3, &config(5)).unwrap();
    assert_eq!(host.counter("diana.shop.config.accepted"), Some(2));
}

#[test]
fn a_bounded_number_of_shared_keys_is_used() {
    let mut host = Host::new(3);
    for rpu in 1..20 {
        let mut proxy = host.start_proxy(2, &config(rpu)).unwrap();
        for caller in 0..50 {
            let request = Request::get("/").header("x-device-id", format!("{caller}"));
            proxy.workers[caller % 2].request(&request);
        }
    }
    // The seed, the rules, and a fixed number of slots for what was accepted last.
    assert!(host.shared_keys() <= 10, "they can never be deleted: {}", host.shared_keys());
}

#[test]
fn a_stream_ends_with_the_configuration_that_it_began_under() {
    let mut host = Host::new(4);
    let mut vm = host.start_vm(&config(1)).unwrap();
    let old = vm.open(&Request::get("/")).unwrap();
    vm.configure(&config(3)).unwrap();
    let admitted = (0..5).filter(|_| vm.request(&Request::get("/")).is_admitted()).count();
    assert_eq!(admitted, 2, "the new configuration is in force, and knows of the first");
    vm.run(2 * SECOND);
    assert_eq!(vm.answer(old).fate, Fate::Admitted);
    assert_eq!(vm.close(old).unwrap().status(), 200);
    vm.end_drain().unwrap();
    vm.run(2 * SECOND);
    let (allowed, refused) = ("diana.shop.rule.r.allowed", "diana.shop.rule.r.refused");
    assert_eq!(host.counter(allowed), Some(3));
    assert_eq!(host.counter(refused), Some(3));
    assert_eq!(host.gauge("diana.shop.rule.r.keys"), Some(1), "both share a table");
}

#[test]
fn the_end_of_the_drain_cuts_streams_without_harm() {
    let mut host = Host::new(5);
    let mut vm = host.start_vm(&config(9)).unwrap();
    for _ in 0..5 {
        vm.open(&Request::get("/")).unwrap();
    }
    vm.configure(&config(7)).unwrap();
    vm.end_drain().unwrap();
    vm.run(2 * SECOND);
    assert!(vm.request(&Request::get("/")).is_admitted());
    assert_eq!(host.counter("diana.shop.rule.r.allowed"), Some(5), "flushed as the root ended");
}

#[test]
fn many_changes_leave_no_memory_behind() {
    let mut host = Host::new(6);
    let mut vm = host.start_vm(&config(1)).unwrap();
    let mut memory = Vec::new();
    for rpu in 2..100 {
        vm.configure(&config(rpu)).unwrap();
        for caller in 0..20 {
            vm.request(&Request::get("/").header("x-device-id", format!("{caller}")));
        }
        vm.end_drain().unwrap();
        memory.push(vm.memory());
    }
    assert_eq!(memory[memory.len() - 1], memory[10], "{memory:?}");
}
