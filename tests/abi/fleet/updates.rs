//! Changes of the plugin's configuration: whatever their number, nothing of the rules before stays.

use super::played::{self, Rule, answer};
use super::{LEAVES, MILLISECOND, SECOND, host};
use host::request::Request;
use host::vm::Vm;
use host::{Host, Proxy};

const UPDATES: usize = 200;

/// So many that some three hundred bytes of each would be seen.
const MANY: usize = 2 * UPDATES;

/// By which the memory of a VM grows.
const PAGE: usize = 1 << 16;

const RULES: usize = 5;

/// Rules of which each keeps what it knows of callers.
fn config(number: usize) -> String {
    let limit = |rule| {
        format!(
            "  - Url: /{rule}\n    rules: [{{name: r{rule}, actor: device, unit: second, rpu: {}, \
             algo: W, scope: global}}]\n",
            1_000 + number
        )
    };
    let limits: String = (0..RULES).map(limit).collect();
    format!("redis: {{cluster: redis, timeout: 20ms}}\nlimits:\n{limits}")
}

fn to(rule: usize) -> Request {
    Request::get(format!("/{rule}")).header("x-device-id", "ann")
}

fn answer_all(vm: &mut Vm, block: u64) {
    while let Some(call) = vm.call_outs().first().cloned() {
        let response = answer(played::asks(&call), Rule { block, ..Rule::ADMITS });
        vm.answer_call_out(response).unwrap();
    }
}

/// Requests about which Redis decides; it lends permits.
fn serve(vm: &mut Vm) {
    for _ in 0..2 {
        let streams: Vec<u32> = (0..RULES).map(|rule| vm.open(&to(rule)).unwrap()).collect();
        for _ in 0..5 {
            vm.run(MILLISECOND);
            answer_all(vm, 5);
        }
        for stream in streams {
            assert!(vm.close(stream).unwrap().is_admitted());
        }
    }
}

fn update(proxy: &mut Proxy, number: usize) {
    for vm in [&mut proxy.main, &mut proxy.workers[0]] {
        vm.configure(&config(number)).unwrap();
        vm.end_drain().unwrap();
    }
}

fn modes(host: &Host) -> [u64; 2] {
    ["fleet", "gateway"]
        .map(|mode| host.gauge(&format!("diana.shop.mode.{mode}")).unwrap_or_default())
}

/// The main thread serves nothing, and nobody calls its roots.
#[test]
fn memory_and_gauges_are_as_after_the_first() {
    let mut host = host(40);
    // The record of the fingerprints of rules is as long as it can be: it would grow until some eight
    // hundred updates of so few rules.
    host.shared_data().set(b"diana/1/shop/rules", &[0; 32 << 10], 0).unwrap();
    let mut proxy = host.start_proxy(1, &config(0)).unwrap();
    let (mut worker, mut main) = (Vec::new(), Vec::new());
    for number in 1..=MANY {
        serve(&mut proxy.workers[0]);
        update(&mut proxy, number);
        worker.push(proxy.workers[0].memory());
        main.push(proxy.main.memory());
    }
    serve(&mut proxy.workers[0]);
    for _ in 0..SECOND / MILLISECOND {
        proxy.run(MILLISECOND);
        answer_all(&mut proxy.workers[0], 0);
    }
    // What is allocated stays the same to the byte, as the law of the worker's configurations says; but where the free
    // blocks lie it may take one page more for once.
    assert!(worker[MANY - 1] <= worker[9] + PAGE, "{worker:?}");
    assert!(main[MANY - 1] <= main[9] + PAGE, "{main:?}");
    assert_eq!(modes(&host), [1, 0]);
    assert!(!proxy.main.has_timer());
}

/// Listeners may drain for many minutes. Their rules know nothing that takes memory once no request comes.
#[test]
fn rules_that_drain_without_requests_take_hardly_any_memory() {
    let mut host = host(43);
    let mut proxy = host.start_proxy(1, &config(0)).unwrap();
    let old = proxy.workers[0].in_force();
    let mut memory = Vec::new();
    for number in 1..=25 {
        serve(&mut proxy.workers[0]);
        for vm in [&mut proxy.main, &mut proxy.workers[0]] {
            vm.configure(&config(number)).unwrap();
        }
        for _ in 0..4 * SECOND / MILLISECOND {
            proxy.run(MILLISECOND);
            answer_all(&mut proxy.workers[0], 0);
        }
        assert_eq!(modes(&host), [0, 0], "those before serve nobody, and this one has not begun");
        memory.push(proxy.workers[0].memory());
    }
    let each = (memory[24] - memory[4]) / 20;
    assert!(each < 64 << 10, "{each} bytes each: {memory:?}");
    // Whoever still comes to one of them is served.
    let worker = &mut proxy.workers[0];
    worker.turn_to(old);
    serve(worker);
    assert!(!proxy.main.has_timer());
}

/// What the old rules held of Redis's permits goes back by way of the new root.
#[test]
fn a_root_that_ends_gives_back_what_it_holds() {
    let mut host = host(41);
    let mut vm = host.start_vm(&config(0)).unwrap();
    serve(&mut vm);
    vm.run(LEAVES);
    answer_all(&mut vm, 0);
    vm.configure(&config(1)).unwrap();
    vm.end_drain().unwrap();
    vm.run(LEAVES);
    assert_eq!(vm.call_outs().len(), 1, "the permits go back");
    answer_all(&mut vm, 0);
    vm.run(SECOND);
    assert!(vm.call_outs().is_empty() && !vm.has_timer(), "and that is all");
}

/// Redis is away for good: nothing goes back, and nothing stays either.
#[test]
fn a_root_that_ends_while_redis_is_away_leaves_nothing_behind() {
    let mut host = host(42);
    let mut vm = host.start_vm(&config(0)).unwrap();
    let mut memory = Vec::new();
    for number in 1..20 {
        let stream = vm.open(&to(0)).unwrap();
        vm.run(SECOND);
        assert!(vm.close(stream).unwrap().is_admitted());
        vm.configure(&config(number)).unwrap();
        vm.end_drain().unwrap();
        memory.push(vm.memory());
    }
    vm.run(SECOND);
    assert_eq!(memory[18], memory[5], "{memory:?}");
    assert_eq!(modes(&host), [0, 0], "nobody has asked the last one");
}
