//! Rules for the fleet with the shipped module: requests wait for a Redis that the test plays.

mod faults;
pub mod played;
mod updates;

use host::Host;
use host::request::Request;
use host::vm::Vm;
use played::{Rule, answer};

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;

/// Ticks within which a trip leaves that a request gave cause to.
const LEAVES: u64 = 2 * MILLISECOND;

const CONFIG: &str = "
redis: {cluster: redis, timeout: 20ms}
limits: [{Url: /, rules: [{name: r, actor: device, unit: second, rpu: 100, algo: W, scope: global}]}]
";

fn host(seed: u64) -> Host {
    let host = Host::new(seed);
    host.add_cluster("redis");
    host
}

fn of(caller: &str) -> Request {
    Request::get("/a").header("x-device-id", caller)
}

/// Opens a stream, which waits for Redis.
fn ask(vm: &mut Vm, caller: &str) -> u32 {
    let stream = vm.open(&of(caller)).unwrap();
    assert!(vm.answer(stream).is_held());
    stream
}

/// Answers the one call that is open: all its asks alike.
fn decide(vm: &mut Vm, rule: Rule) -> usize {
    vm.run(LEAVES);
    assert_eq!(vm.call_outs().len(), 1);
    let call = vm.call_outs()[0].clone();
    let asks = played::asks(&call);
    vm.answer_call_out(answer(asks, rule)).unwrap();
    vm.run(LEAVES);
    asks
}

#[test]
fn a_request_waits_for_the_answer() {
    let mut host = host(1);
    let mut vm = host.start_vm(CONFIG).unwrap();
    let stream = ask(&mut vm, "ann");
    vm.run(LEAVES);
    let call = vm.call_outs()[0].clone();
    assert_eq!(call.cluster, "redis");
    assert!((1..=20).contains(&call.timeout), "{}", call.timeout);
    let method = call.headers.iter().find(|(name, _)| name == ":method").unwrap();
    assert_eq!(method.1, b"POST");
    assert_eq!(decide(&mut vm, Rule::ADMITS), 1);
    assert!(vm.answer(stream).is_admitted());
    assert!(vm.close(stream).unwrap().is_admitted());
}

#[test]
fn who_is_refused_is_told_when_to_come_back_and_asks_no_more_until_then() {
    let mut host = host(2);
    let mut vm = host.start_vm(CONFIG).unwrap();
    let stream = ask(&mut vm, "ann");
    decide(&mut vm, Rule::refuses(SECOND / 2));
    let answer = vm.close(stream).unwrap();
    assert_eq!((answer.status(), answer.retry_after()), (503, Some(1)));
    for _ in 0..100 {
        assert!(vm.request(&of("ann")).is_refused());
    }
    vm.run(LEAVES);
    assert!(vm.call_outs().is_empty(), "what Redis refused is remembered");
    vm.run(SECOND / 2);
    ask(&mut vm, "ann");
}

#[test]
fn requests_that_come_together_share_a_call() {
    let mut host = host(3);
    let mut vm = host.start_vm(CONFIG).unwrap();
    let streams: Vec<u32> = (0..100).map(|caller| ask(&mut vm, &caller.to_string())).collect();
    assert_eq!(decide(&mut vm, Rule::ADMITS), 100);
    // At most 32 go on in one call of the host.
    vm.run(10 * MILLISECOND);
    assert!(streams.into_iter().all(|stream| vm.close(stream).unwrap().is_admitted()));
    assert!(vm.most_at_once() <= 32);
}

#[test]
fn a_block_is_spent_without_a_call() {
    let mut host = host(4);
    let mut vm = host.start_vm(CONFIG).unwrap();
    for _ in 0..2 {
        let stream = ask(&mut vm, "ann");
        decide(&mut vm, Rule { block: 40, ..Rule::ADMITS });
        vm.close(stream).unwrap();
        if vm.request(&of("ann")).is_admitted() {
            break;
        }
    }
    for _ in 0..15 {
        let answer = vm.request(&of("ann"));
        assert!(answer.is_admitted());
        assert_eq!(answer.calls("proxy_http_call"), 0);
        assert_eq!(answer.calls("proxy_get_shared_data"), 0);
    }
    vm.run(LEAVES);
    assert!(vm.call_outs().is_empty(), "more than half is left");
    (0..10).for_each(|_| assert!(vm.request(&of("ann")).is_admitted()));
    vm.run(LEAVES);
    assert_eq!(vm.call_outs().len(), 1, "more is asked for while the rest is spent");
    assert!(vm.request(&of("ann")).is_admitted());
}

#[test]
fn who_leaves_while_he_waits_gets_his_permit_back() {
    let mut host = host(5);
    let mut vm = host.start_vm(CONFIG).unwrap();
    let (gone, stays) = (ask(&mut vm, "ann"), ask(&mut vm, "bob"));
    vm.run(LEAVES);
    vm.close(gone).unwrap();
    assert_eq!(decide(&mut vm, Rule::ADMITS), 2);
    assert!(vm.close(stays).unwrap().is_admitted());
    vm.run(LEAVES);
    assert_eq!(vm.call_outs().len(), 1, "what Redis charged is given back");
    assert_eq!(played::asks(&vm.call_outs()[0].clone()), 1);
}

#[test]
fn a_change_of_the_configuration_strands_nobody_who_waits() {
    for silent in [false, true] {
        let mut host = host(6);
        let mut vm = host.start_vm(CONFIG).unwrap();
        let before = ask(&mut vm, "ann");
        vm.run(LEAVES);
        vm.configure(&CONFIG.replace("rpu: 100", "rpu: 200")).unwrap();
        if silent {
            vm.silence_old_roots();
        }
        let after = ask(&mut vm, "bob");
        vm.run(LEAVES);
        while let Some(call) = vm.call_outs().first().cloned() {
            vm.answer_call_out(answer(played::asks(&call), Rule::ADMITS)).unwrap();
        }
        vm.run(LEAVES);
        for stream in [before, after] {
            assert!(vm.close(stream).unwrap().is_admitted());
        }
        vm.end_drain().unwrap();
    }
}
