//! Responses to clients, and the state for access logs.

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

/// A part of the trailers of gRPC-Web, in binary and in base64. The delay of a retry follows.
const WEB: &str = "grpc-status:8\r\ngrpc-message:9 %25 by r\r\ngrpc-retry-pushback-ms:";
const WEB_TEXT: &str = "ncnBjLXN0YXR1czo4DQpncnBjLW1lc3NhZ2U6OSAlMjUgYnkgcg0K";

/// Also sends plain requests, whose responses must not have the headers of an earlier refusal.
#[test]
fn rpc_clients_get_errors_of_their_protocol() {
    let mut vm = start("response: {problem: true, body: '9 % by {rule}'}", "algo: W");
    (0..3).for_each(|_| assert!(vm.request(&request()).is_admitted()));
    let error = r#"{"code":"resource_exhausted","message":"9 % by r"}"#;
    let end = format!("\u{2}\0\0\0\u{3c}{{\"error\":{error}}}");
    let (unary, grpc) = ("application/json", Some("9 %25 by r"));
    for (content_type, status, reply_type, message, body) in [
        ("application/grpc", 200, "application/grpc", grpc, ""),
        ("application/grpc-web+proto", 200, "application/grpc-web+proto", None, WEB),
        ("application/grpc-web-text", 200, "application/grpc-web-text", None, WEB_TEXT),
        ("application/proto", 429, unary, None, error),
        ("application/json", 429, unary, None, error),
        ("application/connect+json", 200, "application/connect+json", None, &*end),
    ] {
        let rpc = request().header("content-type", content_type);
        let rpc = rpc.header("connect-protocol-version", "1");
        let answer = vm.request(&rpc.clone().without(":method").header(":method", "POST"));
        assert_eq!(answer.status(), status, "{content_type}");
        assert_eq!(answer.header("content-type"), Some(reply_type));
        assert_eq!(answer.header("grpc-status"), message.map(|_| "8"), "{content_type}");
        assert_eq!(answer.header("grpc-message"), message, "{content_type}");
        let found = String::from_utf8_lossy(&answer.body);
        match content_type.contains("web") {
            true => assert!(found.contains(body), "{found}"),
            false => assert_eq!(found, body, "{content_type}"),
        }
        let pushback = answer.header("grpc-retry-pushback-ms").map(|ms| ms.parse::<u64>().unwrap());
        assert_eq!(pushback.is_some_and(|ms| ms > 0), message.is_some(), "{content_type}");
        assert!(answer.retry_after().is_some() && answer.header("ratelimit").is_some());
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{content_type}");

        // The host encodes the reply to gRPC itself.
        let get = vm.request(&rpc);
        let status = if content_type == "application/grpc" { 200 } else { 503 };
        assert_eq!(get.status(), status, "GET {content_type}");
        assert_eq!(get.header("cache-control"), Some("no-store"), "GET {content_type}");

        let plain = vm.request(&request().header("content-type", "application/json"));
        assert_eq!(plain.status(), 503);
        assert_eq!(plain.header("content-type"), Some("application/problem+json"));
        assert_eq!(plain.header("grpc-status"), None);
        assert!(plain.body.starts_with(b"{\"type\":"), "{plain:?}");
    }
}

/// A field of the access log's state.
fn state_field<'a>(state: &'a str, name: &str) -> &'a str {
    state.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

fn assert_reports_agree(answer: &Answer, url: &str) {
    let state = String::from_utf8(answer.filter_state["wasm.diana"].clone()).unwrap();
    let [rule, limit, left, wait, reset] =
        ["rule", "limit", "remaining", "wait", "reset"].map(|name| state_field(&state, name));
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
fn cached_refusal_headers_fit_each_refusal() {
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
                assert_reports_agree(&answer, url);
            }
            host.advance(random.u64(0..400_000));
        }
        assert!(refused > 300, "{refused}");
    }
}
