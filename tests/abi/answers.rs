//! What clients and access logs get to see.

use fastrand::Rng;

use host::Host;
use host::answer::Answer;
use host::request::Request;
use host::vm::Vm;

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

/// The trailers of gRPC-Web, in binary and in base64.
const WEB: &[u8] = b"\x80\0\0\0\x28grpc-status:8\r\ngrpc-message:9 %25 by r\r\n";
const WEB_TEXT: &str = "gAAAAChncnBjLXN0YXR1czo4DQpncnBjLW1lc3NhZ2U6OSAlMjUgYnkgcg0K";

/// Sends plain requests in between, whose headers must not be those of the refusal before.
#[test]
fn rpc_clients_get_errors_of_their_protocol() {
    let mut vm = start("response: {problem: true, body: '9 % by {rule}'}", "algo: W");
    (0..3).for_each(|_| assert!(vm.request(&request()).is_admitted()));
    let error = r#"{"code":"resource_exhausted","message":"9 % by r"}"#;
    let web = String::from_utf8_lossy(WEB);
    let end = format!("\u{2}\0\0\0\u{3c}{{\"error\":{error}}}");
    let (unary, grpc) = ("application/json", Some("9 %25 by r"));
    for (content_type, status, reply_type, message, body) in [
        ("application/grpc", 200, "application/grpc", grpc, ""),
        ("application/grpc-web+proto", 200, "application/grpc-web+proto", None, &*web),
        ("application/grpc-web-text", 200, "application/grpc-web-text", None, WEB_TEXT),
        ("application/proto", 429, unary, None, error),
        ("application/json", 429, unary, None, error),
        ("application/connect+json", 200, "application/connect+json", None, &*end),
    ] {
        let rpc = request().header("content-type", content_type);
        let answer = vm.request(&rpc.header("connect-protocol-version", "1"));
        assert_eq!(answer.status(), status, "{content_type}");
        assert_eq!(answer.header("content-type"), Some(reply_type));
        assert_eq!(answer.header("grpc-status"), message.map(|_| "8"), "{content_type}");
        assert_eq!(answer.header("grpc-message"), message, "{content_type}");
        assert_eq!(String::from_utf8_lossy(&answer.body), body, "{content_type}");
        assert!(answer.retry_after().is_some() && answer.header("ratelimit").is_some());

        let plain = vm.request(&request().header("content-type", "application/json"));
        assert_eq!(plain.status(), 503);
        assert_eq!(plain.header("content-type"), Some("application/problem+json"));
        assert_eq!(plain.header("grpc-status"), None);
        assert!(plain.body.starts_with(b"{\"type\":"), "{plain:?}");
    }
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

/// What the access log is told under a name.
fn told<'a>(state: &'a str, name: &str) -> &'a str {
    state.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

fn assert_told_alike(answer: &Answer, url: &str) {
    let state = String::from_utf8(answer.filter_state["wasm.diana"].clone()).unwrap();
    let [rule, limit, left, wait, reset] =
        ["rule", "limit", "remaining", "wait", "reset"].map(|name| told(&state, name));
    let seconds = |time: &str| {
        let (whole, rest) = time.strip_suffix('s').unwrap().split_once('.').unwrap();
        (whole.parse::<u64>().unwrap() + u64::from(rest != "000000")).to_string()
    };
    assert_eq!(answer.header("retry-after"), Some(&*seconds(wait)), "{state}");
    let policy = answer.header("ratelimit-policy").unwrap();
    assert!(policy.starts_with(&format!("\"{rule}\";q={limit};w=")), "{policy} of {state}");
    let limit = format!("\"{rule}\";r={left};t={}", seconds(reset));
    assert_eq!(answer.header("ratelimit"), Some(&*limit), "{state}");
    assert_eq!(answer.header("x-url"), Some(url), "{state}");
}

#[test]
fn headers_are_those_of_each_refusal_whatever_the_one_before_was_told() {
    let entry = |url: &str, unit: &str, rpu: u64| {
        format!(
            "{{Url: {url}, rules: [{{name: {unit}-{rpu}, actor: device, unit: {unit}, rpu: {rpu}, \
             cost: 2, algo: TB, scope: local}}], response: {{headers: {{x-url: {url}}}}}}}"
        )
    };
    let entries = [entry("/a", "minute", 3), entry("/b", "minute", 4), entry("/c", "hour", 3)];
    for entries in [&entries[..], &entries[..1]] {
        let mut host = Host::new(1);
        let mut vm = host.start_vm(&format!("limits: [{}]", entries.join(", "))).unwrap();
        let mut random = Rng::with_seed(7);
        let mut refused = 0;
        for _ in 0..3_000 {
            let url = *random.choice(&["/a", "/b", "/c"]).unwrap();
            let name = *random.choice(&["ann", "bob"]).unwrap();
            let answer = vm.request(&Request::get(url).header("x-device-id", name));
            if answer.is_refused() {
                refused += 1;
                assert_told_alike(&answer, url);
            }
            host.advance(random.u64(0..400_000));
        }
        assert!(refused > 300, "{refused}");
    }
}
