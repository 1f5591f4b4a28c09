//! What clients and access logs get to see.

use crate::host::Host;
use crate::host::request::Request;
use crate::host::vm::Vm;

fn start(settings: &str, rule: &str) -> Vm {
    let config = format!(
        "{settings}\nlimits: [{{Url: /, rules: [{{name: r, actor: device, unit: minute, rpu: 3, \
         scope: local, {rule}}}]}}]"
    );
    Host::new(1).start_vm(&config).unwrap_or_else(|error| panic!("{config}\n{error}"))
}

fn request() -> Request {
    Request::get("/").header("x-device-id", "ann")
}

#[test]
fn a_refusal_says_who_refused_and_when_to_come_back() {
    let mut vm = start("", "algo: TB");
    (0..3).for_each(|_| assert!(vm.request(&request()).is_admitted()));
    let answer = vm.request(&request());
    assert_eq!((answer.status(), answer.retry_after()), (503, Some(20)));
    assert_eq!(answer.header("x-envoy-ratelimited"), Some("true"));
    assert_eq!(answer.header("ratelimit-policy"), Some("\"r\";q=3;w=60"));
    assert_eq!(answer.header("ratelimit"), Some("\"r\";r=0;t=20"));
    assert!(!answer.body.is_empty() && answer.body.len() < 200);
    assert!(!answer.details.is_empty(), "%RESPONSE_CODE_DETAILS% says who answered");
    let state = String::from_utf8(answer.filter_state["wasm.diana"].clone()).unwrap();
    assert!(state.contains("rule=r") && !state.contains("ann"), "{state}");
}

#[test]
fn grpc_callers_get_resource_exhausted() {
    let mut vm = start("response: {status: 429, body: slow down}", "algo: W");
    let grpc = request().header("content-type", "application/grpc");
    (0..3).for_each(|_| assert!(vm.request(&grpc).is_admitted()));
    let answer = vm.request(&grpc);
    assert_eq!((answer.status(), answer.header("grpc-status")), (200, Some("8")));
    assert_eq!(answer.header("grpc-message"), Some("slow down"));
    assert!(answer.retry_after().is_some());
    assert_eq!(vm.request(&request()).status(), 429, "the same caller over plain HTTP");
}

#[test]
fn accepted_requests_report_only_if_asked_to() {
    let mut silent = start("", "algo: SW").request(&request());
    assert_eq!(silent.header("ratelimit"), None);
    assert_eq!(silent.filter_state.pop_first(), None);

    let asked = "accepted: {headers: true, filter_state: true}";
    let answer = start(asked, "algo: SW").request(&request());
    assert_eq!(answer.status(), 200);
    let told = answer.header("ratelimit").unwrap();
    assert!(told.starts_with("\"r\";r=2;t="), "{told}");
    assert!(answer.filter_state.contains_key("wasm.diana"));
}

#[test]
fn a_shadow_rule_refuses_nobody_and_says_so() {
    let mut vm = start("", "algo: W, shadow: true");
    let answers: Vec<_> = (0..5).map(|_| vm.request(&request())).collect();
    assert!(answers.iter().all(|answer| answer.is_admitted()));
    let reported = answers.iter().map(|answer| answer.filter_state.len()).collect::<Vec<_>>();
    assert_eq!(reported, [0, 0, 0, 1, 1]);
}

#[test]
fn refusals_are_logged_at_most_once_a_second_and_rule() {
    let mut host = Host::new(2);
    let config = "log: refused\nlimits: [{Url: /, rules: [{actor: all, unit: day, rpu: 0, \
                  scope: local}]}]";
    let mut vm = host.start_vm(config).unwrap();
    let before = vm.log().len();
    for _ in 0..100 {
        assert!(vm.request(&request()).is_refused());
        host.advance(30_000);
    }
    assert_eq!(vm.log().len() - before, 3, "{:?}", vm.log());
}
