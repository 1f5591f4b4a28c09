//! Held requests: the instants and the number of resumptions, and the cost of waiting.

use host::Host;
use host::answer::StreamOutcome;
use host::call_out::Response;
use host::request::Request;
use host::vm::Vm;
use kit::model::redis::Redis;

const SECOND: u64 = 1_000_000;
const MILLISECOND: u64 = 1_000;

/// Maximum delay between a slot and the departure of its request.
const LATEST: u64 = 2_000;

/// A leaky bucket of `rpu` a second for each value of `x-device-id`.
fn config(scope: &str, rpu: u64, more: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: device, unit: second, rpu: {rpu}, algo: LB, \
         scope: {scope}{more}}}]}}]"
    )
}

fn start(host: &mut Host, config: &str) -> Vm {
    host.start_vm(config).unwrap_or_else(|error| panic!("{config}\n{error}"))
}

fn open(vm: &mut Vm, caller: &str) -> u32 {
    vm.open(&Request::get("/").header("x-device-id", caller))
        .unwrap_or_else(|trap| panic!("{trap}"))
}

/// The time after `start` at which a request was resumed, in whole milliseconds.
fn went_on(vm: &mut Vm, stream: u32, start: u64) -> Option<u64> {
    Some((vm.answer(stream).went_on? - start) / MILLISECOND)
}

/// Fails unless each stream was resumed within 2 ms of `slots`, in milliseconds from `start`.
#[track_caller]
fn assert_slots(vm: &mut Vm, streams: &[u32], start: u64, slots: &[u64]) {
    for (number, (stream, slot)) in streams.iter().zip(slots).enumerate() {
        let found = went_on(vm, *stream, start);
        let on_time = found.is_some_and(|at| (*slot..=slot + LATEST / MILLISECOND).contains(&at));
        assert!(on_time, "request {number} went on at {found:?} ms, not at {slot}");
    }
}

/// An error of a third of a microsecond per slot would be a millisecond here.
#[test]
fn held_requests_leave_without_drift() {
    for scope in ["local", "gateway"] {
        let mut host = Host::new(25);
        let mut vm = start(&mut host, &config(scope, 3_000, ""));
        let began = host.clock().monotonic();
        let streams: Vec<u32> = (0..3_000).map(|_| open(&mut vm, "ann")).collect();
        vm.run(SECOND + 10 * MILLISECOND);
        let slots: Vec<u64> = (0..3_000).map(|number| number / 3).collect();
        assert_slots(&mut vm, &streams, began, &slots);
    }
}

#[test]
fn at_most_32_requests_resume_each_millisecond() {
    const HELD: usize = 2_000;
    let mut host = Host::new(20);
    let mut vm = start(&mut host, &config("gateway", 1_000_000, ""));
    let streams: Vec<u32> = (0..=HELD).map(|_| open(&mut vm, "ann")).collect();
    let waiting =
        |vm: &mut Vm| streams.iter().filter(|stream| vm.answer(**stream).is_held()).count();
    assert_eq!(waiting(&mut vm), HELD);
    while waiting(&mut vm) > 0 {
        assert_eq!(vm.tick_period(), 1);
        let (before, ticks) = (waiting(&mut vm), vm.ticks());
        vm.run(MILLISECOND);
        let released = before - waiting(&mut vm);
        assert!(released as u64 <= 32 * (vm.ticks() - ticks));
    }
    assert_eq!(vm.most_at_once(), 32);
    let backlog = HELD.div_ceil(32) as u64;
    assert!((backlog..=backlog + 1).contains(&vm.ticks()), "{} ticks", vm.ticks());
}

/// Envoy takes the steps of one call one after the other, and may close the connection of a client, with all of its streams, at
/// the first.
#[test]
fn step_may_end_the_stream_of_a_later_one() {
    let mut host = Host::new(22);
    let open_ones = "limits:\n- Url: /\n  rules:\n  - {name: queue, actor: all, unit: second, rpu: 1000000, algo: LB, scope: local}\n  \
                     - {name: open, actor: device, in_flight: 9, scope: local}";
    let mut vm = start(&mut host, open_ones);
    let open_requests = |host: &Host| host.gauge("diana.shop.rule.open.in_flight");
    let passed = open(&mut vm, "ann");
    let [first, second, third] = ["bea", "cid", "dan"].map(|caller| open(&mut vm, caller));
    vm.end_together(first, second);
    vm.run(2 * MILLISECOND);
    assert_eq!(vm.most_at_once(), 3, "in one call");
    assert!(!vm.is_open(second));
    let outcomes = [passed, first, third].map(|stream| vm.outcome(stream));
    assert_eq!(outcomes, [StreamOutcome::Admitted; 3]);
    vm.run(SECOND);
    assert_eq!(open_requests(&host), Some(3));
    [passed, first, third].into_iter().for_each(|stream| drop(vm.close(stream).unwrap()));
    vm.run(3 * SECOND);
    assert_eq!(open_requests(&host), Some(0));
}

/// As above, at a refusal, which calls the module within.
#[test]
fn refusal_may_end_the_stream_of_a_later_step() {
    let (mut host, mut redis) = (Host::new(24), Redis::default());
    host.add_cluster("redis");
    let rules = "{name: few, actor: device, unit: day, rpu: 1, algo: W, scope: global}, \
                 {name: open, actor: all, in_flight: 9, scope: local}";
    let config =
        format!("redis: {{cluster: redis, timeout: 20ms}}\nlimits: [{{Url: /, rules: [{rules}]}}]");
    let mut vm = start(&mut host, &config);
    let mut round = |vm: &mut Vm| {
        vm.run(2 * MILLISECOND);
        while let Some(call) = vm.call_outs().first().cloned() {
            let body = redis.answer(&call.body, host.clock().wall());
            vm.answer_call_out(Response { body, ..Response::new(200, "") }).unwrap();
        }
    };
    let used = open(&mut vm, "ann");
    round(&mut vm);
    let [first, second, third] = ["ann", "cid", "dan"].map(|caller| open(&mut vm, caller));
    vm.end_together(first, second);
    round(&mut vm);
    assert_eq!(vm.most_at_once(), 3, "in one call");
    assert!(!vm.is_open(second));
    let outcomes = [used, first, third].map(|stream| vm.outcome(stream));
    assert_eq!(
        outcomes,
        [StreamOutcome::Admitted, StreamOutcome::Refused, StreamOutcome::Admitted]
    );
    vm.run(3 * SECOND);
    assert_eq!(host.gauge("diana.shop.rule.open.in_flight"), Some(2));
    [used, first, third].into_iter().for_each(|stream| drop(vm.close(stream).unwrap()));
    vm.run(3 * SECOND);
    assert_eq!(host.gauge("diana.shop.rule.open.in_flight"), Some(0));
}

#[test]
fn long_hold_costs_no_ticks() {
    for scope in ["local", "gateway"] {
        let mut host = Host::new(21);
        let mut vm = start(&mut host, &config(scope, 2, ", max_delay: 20s, max_queue: 200"));
        assert!(!vm.has_timer());
        let began = host.clock().monotonic();
        let streams: Vec<u32> = (0..5).map(|_| open(&mut vm, "ann")).collect();
        vm.run(3 * SECOND);
        assert_slots(&mut vm, &streams, began, &[0, 500, 1000, 1500, 2000]);
        // One for each waiting request, and possibly one for metrics.
        assert!((4..=5).contains(&vm.ticks()) && !vm.has_timer(), "{scope}: {}", vm.ticks());
    }
}

#[test]
fn many_held_requests_leave_no_memory() {
    let mut host = Host::new(23);
    let mut vm = start(&mut host, &config("gateway", 100_000, ""));
    let mut memory = Vec::new();
    for _ in 0..16 {
        let streams: Vec<u32> = (0..3_000).map(|_| open(&mut vm, "ann")).collect();
        vm.run(SECOND);
        for stream in streams {
            assert_eq!(vm.close(stream).unwrap().status(), 200);
        }
        memory.push(vm.memory());
    }
    assert_eq!(memory[15], memory[10], "{memory:?}");
}
