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

const OLD: &str = "
redis: {cluster: redis, timeout: 20ms}
explain: {header: x-why, token_env: TOKEN}
limits:
- {Url: /refused, rules: [{name: refused, actor: device, unit: day, rpu: 1, algo: W, scope: global}]}
- {Url: /marked, rules: [{name: marked, actor: device, unit: day, rpu: 1, algo: W, scope: global, over: {mark: x-tier, value: spill}}]}
- {Url: /held, rules: [{name: held, actor: device, unit: second, rpu: 2, algo: LB, scope: global}]}
";

/// Replies of Redis and timers reach the latest root, and each step its stream.
#[test]
fn old_root_refuses_marks_and_holds_while_a_new_one_exists() {
    const TOKEN: &str = "a token of 24 characters";
    let (mut host, mut redis) = (Host::new(41), Redis::default());
    host.add_cluster("redis");
    host.set_environment("TOKEN", TOKEN);
    let mut vm = host.start_vm(OLD).unwrap();
    let old = vm.in_force();
    vm.configure(&format!("{OLD}# later")).unwrap();
    let latest = vm.in_force();
    vm.turn_to(old);
    // The second request of each is refused, marked or held, and the third as well, at the same time.
    let streams = ["/refused", "/marked", "/held"].map(|path| {
        let request = Request::get(path).header("x-device-id", "ann").header("x-why", TOKEN);
        [(); 3].map(|()| vm.open(&request).unwrap())
    });
    for _ in 0..5 {
        vm.run(MILLISECOND);
        assert!(vm.call_outs().iter().all(|call| call.root == latest), "an older one may end");
        answer_all(&mut vm, &mut redis, host.clock().wall());
    }
    let has_header = |vm: &mut Vm, stream, name: &str| {
        let headers = vm.upstream_headers(stream);
        headers.into_iter().find(|(found, _)| found == name).map(|(_, value)| value)
    };
    for stream in streams.into_iter().flatten() {
        assert_eq!(has_header(&mut vm, stream, "x-why"), None, "the token stays here");
        assert!(vm.root_of(stream) == old);
    }
    let state = |vm: &mut Vm, stream| {
        let state = vm.answer(stream).filter_state.remove("wasm.diana").unwrap_or_default();
        String::from_utf8(state).unwrap()
    };
    let [refused, marked, held] = streams;
    assert!(vm.answer(refused[0]).is_admitted());
    for stream in &refused[1..] {
        let answer = vm.answer(*stream);
        assert!(answer.is_refused() && answer.details == "diana_refused", "{answer:?}");
        assert_eq!(answer.status(), 503);
        assert!(answer.header("x-why").is_some_and(|why| why.contains("\"rule\":\"refused\"")));
        assert!(state(&mut vm, *stream).contains(" rule=refused "), "{answer:?}");
    }
    assert_eq!(has_header(&mut vm, marked[0], "x-tier"), None);
    for stream in &marked[1..] {
        assert!(vm.answer(*stream).is_admitted());
        assert_eq!(has_header(&mut vm, *stream, "x-tier").as_deref(), Some(&b"spill"[..]));
    }
    for stream in &held[1..] {
        assert!(vm.answer(*stream).is_held());
        assert!(state(&mut vm, *stream).starts_with("held rule=held "));
    }
    vm.run(SECOND + 5 * MILLISECOND);
    for stream in held.into_iter().chain(marked) {
        let answer = vm.close(stream).unwrap();
        assert!(answer.is_admitted() && answer.header("x-why").is_some(), "{answer:?}");
    }
}
