//! Configuration updates: after any number of them, there is no trace of the old rules.

use host::call_out::Response;
use host::request::Request;
use host::vm::Vm;
use host::{Host, Proxy};
use kit::model::redis::Redis;

const SECOND: u64 = 1_000_000;
const MILLISECOND: u64 = SECOND / 1_000;

/// Enough to detect a leak of some three hundred bytes per update.
const MANY: usize = 400;

/// The unit in which the memory of a VM grows.
const PAGE: usize = 1 << 16;

const RULES: usize = 5;

/// Rules that store callers.
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

fn answer_all(vm: &mut Vm, redis: &mut Redis, now: u64) {
    while let Some(call) = vm.call_outs().first().cloned() {
        let body = redis.answer(&call.body, now);
        vm.answer_call_out(Response { body, ..Response::new(200, "") }).unwrap();
    }
}

/// Requests that Redis decides about.
fn serve(host: &Host, vm: &mut Vm, redis: &mut Redis) {
    for _ in 0..2 {
        let streams: Vec<u32> = (0..RULES).map(|rule| vm.open(&to(rule)).unwrap()).collect();
        for _ in 0..5 {
            vm.run(MILLISECOND);
            answer_all(vm, redis, host.clock().wall());
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

/// The main thread serves no requests, and its roots have no calls.
#[test]
fn many_updates_leave_memory_and_gauges_unchanged() {
    let (mut host, mut redis) = (Host::new(40), Redis::default());
    host.add_cluster("redis");
    // The record of fingerprints has its full length. Otherwise it would grow for some eight
    // hundred updates of so few rules.
    host.shared_data().set(b"diana/1/shop/rules", &[0; 32 << 10], 0).unwrap();
    let mut proxy = host.start_proxy(1, &config(0)).unwrap();
    let (mut worker, mut main) = (Vec::new(), Vec::new());
    for number in 1..=MANY {
        serve(&host, &mut proxy.workers[0], &mut redis);
        update(&mut proxy, number);
        worker.push(proxy.workers[0].memory());
        main.push(proxy.main.memory());
    }
    serve(&host, &mut proxy.workers[0], &mut redis);
    for _ in 0..SECOND / MILLISECOND {
        proxy.run(MILLISECOND);
        answer_all(&mut proxy.workers[0], &mut redis, host.clock().wall());
    }
    // The allocated bytes are constant, as another test shows. Fragmentation may take one page
    // more.
    assert!(worker[MANY - 1] <= worker[9] + PAGE, "{worker:?}");
    assert!(main[MANY - 1] <= main[9] + PAGE, "{main:?}");
    assert_eq!(modes(&host), [1, 0]);
    assert!(proxy.main.has_timer(), "it may send the heartbeat");
}
