//! Several roots in one VM, as of listeners with rules of their own or of a change that drains: whichever of
//! them the host calls, whatever waits has a clock.

mod calls;
mod ends;
mod listeners;

use crate::fleet::played::{self, Rule, answer};
use host::Host;
use host::call_out::Response;
use host::request::Request;
use host::vm::Vm;

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;

/// Rules that hold requests to /held, ask Redis about those to /far, and both about those to /both.
fn config(number: usize) -> String {
    format!(
        "
namespace: shop
response: {{status: {}}}
redis: {{cluster: redis, timeout: 20ms}}
limits:
  - Url: /held
    rules: [{{name: held, actor: device, unit: second, rpu: 20, algo: LB, scope: local}}]
  - Url: /both
    rules:
      - {{name: together, actor: device, unit: second, rpu: 100, algo: W, scope: global}}
      - {{name: paced, actor: device, unit: second, rpu: 20, algo: LB, scope: local}}
  - Url: /far
    rules: [{{name: far, actor: device, unit: second, rpu: 100, algo: W, scope: global}}]
",
        400 + number
    )
}

fn host(seed: u64) -> Host {
    let host = Host::new(seed);
    host.add_cluster("redis");
    host
}

/// A VM of two listeners, and their roots.
fn two_listeners(host: &mut Host) -> (Vm, [u32; 2]) {
    let mut vm = host.start_vm(&config(0)).unwrap();
    let first = vm.in_force();
    vm.configure(&config(1)).unwrap();
    let second = vm.in_force();
    (vm, [first, second])
}

fn open(vm: &mut Vm, root: u32, path: &str, caller: &str) -> u32 {
    vm.turn_to(root);
    vm.open(&Request::get(path).header("x-device-id", caller)).unwrap()
}

/// Answers whatever is out.
fn answer_all(vm: &mut Vm, response: impl Fn(usize) -> Response) {
    while let Some(call) = vm.call_outs().first().cloned() {
        vm.answer_call_out(response(played::asks(&call))).unwrap();
    }
}

fn admits(asks: usize) -> Response {
    answer(asks, Rule::ADMITS)
}
