//! The simulated host has Envoy's semantics, shown with filters of a few instructions.

mod timers;

use host::Host;
use host::call_out::Response;
use host::request::Request;
use host::shared_data::SharedData;
use host::status::Status;
use host::trap::StartError;
use host::vm::Vm;

/// A host of a filter in text form, with the functions of the prelude.
fn host(functions: &str) -> Host {
    let prelude = include_str!("host_model/prelude.wat");
    Host::with_module(&format!("(module {prelude} {functions})"), 0).unwrap()
}

fn start(functions: &str) -> Vm {
    host(functions).start_vm("").unwrap_or_else(|error| panic!("{error}"))
}

/// The log without levels.
fn log_texts(vm: &Vm) -> Vec<String> {
    vm.log().iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

/// A filter that holds every request.
const HOLD: &str = r#"
    (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) (i32.const 1))"#;

#[test]
fn module_with_an_unknown_import_is_not_loaded() {
    let wasm = r#"(module (import "env" "proxy_redis_call" (func (param i32) (result i32))))"#;
    let error = Host::with_module(wasm, 0).unwrap().start_vm("").err().unwrap();
    assert!(matches!(&error, StartError::Unloadable(cause) if cause.contains("proxy_redis_call")));
}

#[test]
fn unimplemented_function_returns_its_status() {
    let vm = start(
        r#"(func (export "proxy_on_configure") (param i32 i32) (result i32)
             (call $say (call $get_status (i32.const 0) (i32.const 0) (i32.const 0)))
             (i32.const 1))"#,
    );
    assert_eq!(log_texts(&vm), ["12"]);
}

#[test]
fn host_functions_are_restricted_during_initialization() {
    let mut host =
        host(r#"(func (export "_initialize") (drop (call $get_log_level (i32.const 0))))"#);
    let error = host.start_vm("").err().unwrap();
    assert!(error.to_string().contains("restricted_callback: proxy_get_log_level"), "{error}");
}

#[test]
fn trap_ends_the_vm_and_shows_the_last_log_lines() {
    let mut vm = start(
        r#"(func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
             (call $say (i32.const 42)) (unreachable))"#,
    );
    let trap = vm.try_request(&Request::get("/")).unwrap_err();
    assert_eq!(
        (trap.call.as_str(), trap.log.as_slice()),
        ("proxy_on_request_headers", &["[info] 42".to_owned()][..])
    );
    assert!(trap.cause.contains("unreachable"), "{trap}");
    assert!(vm.try_run(1_000_000).is_ok(), "no root has a timer, so nothing is called");
    assert!(vm.open(&Request::get("/")).is_err(), "the VM is dead for good");
}

#[test]
fn refused_configuration_returns_its_log_and_keeps_the_old_one() {
    let mut vm = start(
        r#"(func (export "proxy_on_configure") (param i32) (param $size i32) (result i32)
             (call $say (local.get $size)) (i32.eqz (local.get $size)))
           (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
             (i32.const 0))"#,
    );
    let error = vm.configure("bad").unwrap_err();
    assert!(matches!(&error, StartError::Refused(log) if log == &["[info] 03"]), "{error}");
    assert!(vm.request(&Request::get("/")).is_admitted());
}

#[test]
fn local_reply_follows_the_callback_and_runs_response_filters() {
    let mut vm = start(
        r#"(func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
             (drop (call $reply (i32.const 429) (i32.const 112) (i32.const 8) (i32.const 64)
               (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 8)))
             (call $say (i32.const 1)) (i32.const 0))
           (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32)
             (call $say (i32.const 2)) (i32.const 0))
           (func (export "proxy_on_delete") (param i32) (call $say (i32.const 3)))"#,
    );
    let answer = vm.request(&Request::get("/"));
    assert!(answer.is_refused(), "although the callback said Continue");
    assert_eq!((answer.status(), answer.details.as_str()), (429, "upstream"));
    assert_eq!(answer.header("content-length"), Some("5"));
    assert_eq!(log_texts(&vm), ["01", "02", "03"]);
    assert_eq!(answer.calls("proxy_send_local_response"), 1);
    assert!(answer.fuel > 0);

    let grpc = vm.request(&Request::get("/").header("content-type", "application/grpc+proto"));
    assert_eq!((grpc.status(), grpc.header("grpc-status")), (200, Some("8")));
    assert_eq!(grpc.header("grpc-message"), Some("x-key"));
}

/// Holds every request. Each tick serves one context, beginning with the first stream's: it reads
/// the header, resumes, and reads it again.
const RESUME: &str = r#"
    (global $next (mut i32) (i32.const 2))
    (func $look (call $say
      (call $header (i32.const 0) (i32.const 64) (i32.const 5) (i32.const 16) (i32.const 20))))
    (func (export "proxy_on_configure") (param i32 i32) (result i32)
      (i32.eqz (call $tick_period (i32.const 20))))
    (func (export "proxy_on_tick") (param i32)
      (call $say (call $effective (global.get $next)))
      (call $look)
      (drop (call $continue (i32.const 0)))
      (call $look)
      (global.set $next (i32.add (global.get $next) (i32.const 1))))"#;

#[test]
fn hundreds_of_replies_in_one_call_overflow_the_stack() {
    let reject = |limit: u32| {
        format!(
            r#"{HOLD}
            (func (export "proxy_on_configure") (param i32 i32) (result i32)
              (i32.eqz (call $tick_period (i32.const 1))))
            (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32)
              (i32.const 0))
            (func (export "proxy_on_tick") (param i32) (local $id i32)
              (local.set $id (i32.const 2))
              (loop
                (drop (call $effective (local.get $id)))
                (drop (call $reply (i32.const 503) (i32.const 0) (i32.const 0) (i32.const 0)
                  (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1)))
                (local.set $id (i32.add (local.get $id) (i32.const 1)))
                (br_if 0 (i32.lt_u (local.get $id) (i32.const {limit})))))"#
        )
    };
    for (held, survives) in [(32, true), (400, false)] {
        let mut vm = start(&reject(held + 2));
        for _ in 0..held {
            vm.open(&Request::get("/")).unwrap();
        }
        assert_eq!(vm.try_run(2_000).is_ok(), survives, "{held} held");
    }
}

#[test]
fn header_has_the_first_value_and_property_all_values() {
    let mut vm = start(
        r#"(func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
             (drop (call $header (i32.const 0) (i32.const 64) (i32.const 5)
               (i32.const 16) (i32.const 20)))
             (call $say_result)
             (drop (call $property (i32.const 80) (i32.const 21) (i32.const 16) (i32.const 20)))
             (call $say_result)
             (i32.const 0))"#,
    );
    vm.request(&Request::get("/").header("X-Key", "a").header("x-other", "b").header("x-key", "c"));
    assert_eq!(log_texts(&vm), ["a", "a,c"]);
}

#[test]
fn metrics_are_per_process_and_counters_only_grow() {
    let mut host = host(
        r#"(func (export "proxy_on_configure") (param i32 i32) (result i32)
             (drop (call $define (i32.const 0) (i32.const 64) (i32.const 5) (i32.const 16)))
             (call $say (call $increment (i32.load (i32.const 16)) (i64.const 3)))
             (call $say (call $increment (i32.load (i32.const 16)) (i64.const 0)))
             (i32.const 1))"#,
    );
    let proxy = host.start_proxy(2, "").unwrap();
    assert_eq!(host.counter("x-key"), Some(12), "three VMs, and the one that validated");
    assert_eq!(log_texts(&proxy.main), ["00", "02"]);
    assert_eq!(proxy.workers.len(), 2);
}

#[test]
fn shared_data_is_visible_to_all_vms() {
    let mut host = host(
        r#"(func $set (param $cas i32) (call $say (call $set_shared (i32.const 64) (i32.const 5)
             (i32.const 64) (i32.const 5) (local.get $cas))))
           (func (export "proxy_on_configure") (param i32 i32) (result i32)
             (call $set (i32.const -1))
             (call $say (call $get_shared (i32.const 64) (i32.const 5)
               (i32.const 16) (i32.const 20) (i32.const 24)))
             (call $set (i32.load (i32.const 24)))
             (call $say_result)
             (i32.const 1))"#,
    );
    assert_eq!(log_texts(&host.start_vm("").unwrap()), ["00", "00", "00", "x-key"]);
    assert_eq!(log_texts(&host.start_vm("").unwrap()), ["08", "00", "00", "x-key"]);
    assert_eq!(host.shared_keys(), 1);
}

#[test]
fn every_write_takes_the_next_cas_number() {
    let mut data = SharedData::default();
    data.set(b"a", b"1", 0).unwrap();
    data.set(b"b", b"2", 0).unwrap();
    data.set(b"a", b"3", 0).unwrap();
    assert_eq!(data.get(b"a"), Some(&(b"3".to_vec(), 3)));
    assert_eq!(data.get(b"b"), Some(&(b"2".to_vec(), 2)));
}

#[test]
fn cas_mismatch_needs_an_existing_key() {
    let mut data = SharedData::default();
    data.set(b"a", b"1", u32::MAX).unwrap();
    assert_eq!(data.set(b"a", b"2", u32::MAX), Err(Status::CasMismatch));
    assert_eq!(data.set(b"a", b"2", 1), Ok(()));
    assert_eq!(data.set(b"a", b"3", 1), Err(Status::CasMismatch));
    assert_eq!(data.keys(), 1);
}

/// Calls `upstream` when it is configured, and reads the reply.
const CALL: &str = r#"
    (func (export "proxy_on_configure") (param i32 i32) (result i32)
      (call $say (call $http_call (i32.const 112) (i32.const 8) (i32.const 128) (i32.const 72)
        (i32.const 64) (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 20) (i32.const 16)))
      (i32.const 1))
    (func (export "proxy_on_http_call_response") (param i32 i32) (param $headers i32)
      (param i32 i32)
      (call $say (local.get $headers))
      (call $say (call $header (i32.const 6) (i32.const 64) (i32.const 5)
        (i32.const 16) (i32.const 20))))"#;

#[test]
fn call_to_a_known_cluster_gets_the_response_of_the_test() {
    let mut host = host(CALL);
    assert_eq!(log_texts(&host.start_vm("").unwrap()), ["02"], "the cluster is not known yet");
    host.empty_cluster("upstream");
    assert_eq!(log_texts(&host.start_vm("").unwrap()), ["10"], "nobody could answer");
    host.add_cluster("upstream");
    let mut vm = host.start_vm("").unwrap();
    let call = vm.call_outs()[0].clone();
    assert_eq!(
        (call.cluster.as_str(), call.body.as_slice(), call.timeout),
        ("upstream", &b"x-key"[..], 20)
    );
    assert_eq!(call.headers[1], (":path".into(), b"/".to_vec()));
    vm.answer_call_out(Response::new(200, "fine")).unwrap();
    assert_eq!(log_texts(&vm), ["00", "01", "01"], "there is one header, but not `x-key`");
    assert!(vm.call_outs().is_empty());
}

#[test]
fn reset_call_has_no_response_headers() {
    let mut host = host(CALL);
    host.add_cluster("upstream");
    let mut vm = host.start_vm("").unwrap();
    vm.answer_call_out(Response::reset()).unwrap();
    assert_eq!(log_texts(&vm), ["00", "00", "02"]);
}

#[test]
fn ended_root_gets_no_call_response() {
    let mut host = host(CALL);
    host.add_cluster("upstream");
    let mut vm = host.start_vm("a").unwrap();
    vm.configure("b").unwrap();
    assert_eq!(vm.call_outs().len(), 2);
    vm.end_drain().unwrap();
    assert_eq!(vm.call_outs().len(), 1);
    vm.answer_call_out(Response::new(200, "fine")).unwrap();
}

#[test]
fn environment_is_visible_to_vms() {
    let mut host = host(
        r#"(func (export "proxy_on_configure") (param i32 i32) (result i32)
             (drop (call $environ_sizes (i32.const 16) (i32.const 20)))
             (call $say (i32.load (i32.const 16))) (call $say (i32.load (i32.const 20)))
             (i32.const 1))"#,
    );
    host.set_environment("NAME", "value");
    assert_eq!(log_texts(&host.start_vm("").unwrap()), ["01", "11"]);
}

#[test]
fn only_the_wall_clock_can_step() {
    let host = host("");
    let clock = host.clock();
    let (wall, monotonic) = (clock.wall(), clock.monotonic());
    clock.step_wall(-5);
    host.advance(7);
    assert_eq!((clock.wall(), clock.monotonic()), (wall + 2, monotonic + 7));
}
