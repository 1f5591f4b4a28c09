//! The rules of a route apply to all requests on it, for any settings of path normalization in
//! Envoy, and for any interpretation by the upstream.

use serde_json::{Value, json};

use crate::harness::{Client, Envoy, Gateway, Upstream, request};

/// Settings of Envoy: `normalize_path`, `merge_slashes`, `path_with_escaped_slashes_action`, and
/// `ignore_path_parameters_in_path_matching` of its routes.
const SETTINGS: [(bool, bool, &str, bool); 8] = [
    (true, true, "KEEP_UNCHANGED", false),
    (true, true, "UNESCAPE_AND_FORWARD", false),
    (true, true, "UNESCAPE_AND_REDIRECT", false),
    (true, true, "REJECT_REQUEST", false),
    (true, false, "KEEP_UNCHANGED", true),
    (false, true, "KEEP_UNCHANGED", false),
    (false, false, "KEEP_UNCHANGED", true),
    (false, false, "UNESCAPE_AND_FORWARD", false),
];

const EACH: usize = 300;

/// The outcome of a request.
#[derive(Debug)]
struct Served {
    path: String,
    /// The path that the upstream received.
    seen: String,
    route: String,
    is_limited: bool,
}

fn gateway(upstream: &Upstream, how: (bool, bool, &str, bool)) -> Gateway {
    let (normalize_path, merge_slashes, escaped, ignores_parameters) = how;
    let route = |condition: Value, name: &str| {
        let header = json!({"header": {"key": "x-route", "value": name}});
        let to = json!({"cluster": upstream.cluster()});
        json!({"match": condition, "route": to, "response_headers_to_add": [header]})
    };
    let routes = [
        route(json!({"path_separated_prefix": "/hello"}), "hello"),
        route(json!({"prefix": "/hello"}), "like hello"),
        route(json!({"prefix": "/"}), "other"),
    ];
    let hosts = json!([{"name": "all", "domains": ["*"], "routes": routes}]);
    Gateway::with(
        "
limits: [{Url: /hello, rules: [{name: hello, actor: all, unit: hour, rpu: 1000000, scope: local}]}]
accepted: {headers: true}
",
    )
    .before(upstream)
    .routed(
        json!({
            "virtual_hosts": hosts,
            "ignore_path_parameters_in_path_matching": ignores_parameters,
        }),
        json!({
            "normalize_path": normalize_path,
            "merge_slashes": merge_slashes,
            "path_with_escaped_slashes_action": escaped,
        }),
    )
}

/// Sends GETs for these paths. Returns the outcome of those that reached the upstream.
fn served(envoy: &Envoy, upstream: &Upstream, paths: &[String]) -> Vec<Served> {
    let mut client = Client::connect(envoy.port).unwrap();
    let mut served = Vec::new();
    for path in paths {
        let mut answer = client.send(&request("GET", path, &[])).unwrap();
        if let Some(other) = answer.header("location").filter(|_| answer.status == 307) {
            let other = other.split_once("shop.example.com").map_or(other, |(_, path)| path);
            answer = client.send(&request("GET", other, &[])).unwrap();
        }
        let Some(route) = answer.header("x-route") else {
            assert!([307, 400].contains(&answer.status), "{path}: {answer:?}");
            continue;
        };
        let is_limited = answer.header("ratelimit-policy").is_some();
        let (path, seen) = (path.clone(), String::new());
        served.push(Served { path, seen, route: route.to_owned(), is_limited });
    }
    let arrivals = upstream.arrivals();
    assert_eq!(arrivals.len(), served.len());
    for (served, arrival) in served.iter_mut().zip(arrivals) {
        served.seen = arrival.path;
    }
    served
}

/// The path in an upstream that decodes everything.
fn decoded(path: &str) -> String {
    let path = path.split('?').next().unwrap();
    let (mut text, mut rest) = (String::new(), path);
    while let Some((before, after)) = rest.split_once('%') {
        let code = after.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        text += before;
        text.push(code.map_or('%', char::from));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    let text = (text + rest).replace('\\', "/");
    let mut names = Vec::new();
    for name in text.split('/').map(|segment| segment.split(';').next().unwrap()) {
        match name {
            "" | "." => {}
            ".." => _ = names.pop(),
            name => names.push(name),
        }
    }
    format!("/{}/", names.join("/"))
}

/// Why the rule of `/hello` should apply to a request, if it should.
fn reason(served: &Served) -> Option<&'static str> {
    let rest = served.seen.strip_prefix("/hello").unwrap_or("-").to_ascii_lowercase();
    let ends = ["/", "\\", ";", "%2f", "%5c", "%3b"].iter().any(|end| rest.starts_with(end));
    match served.route.as_str() {
        "hello" => Some("its route"),
        // This route also matches /hellooo.
        "like hello" if ends => Some("its route"),
        _ if decoded(&served.seen).starts_with("/hello/") => Some("its upstream"),
        _ => None,
    }
}

#[test]
fn former_escapes_are_limited() {
    let upstream = Upstream::start();
    let envoy = gateway(&upstream, SETTINGS[0]).start_shared();
    let paths = [
        "/hello/..%2fx",
        "/hello/..%5cx",
        "/hello/.%2e;/x",
        "/hello/%2e%2e%3b/x",
        "/hello/;/..%2f",
    ];
    for served in served(&envoy, &upstream, &paths.map(String::from)) {
        assert_eq!(served.route, "hello", "{served:?}");
        assert!(served.is_limited, "{served:?}");
    }
    envoy.assert_unharmed();
}

#[test]
fn every_served_request_was_limited() {
    let mut random = fastrand::Rng::with_seed(kit::seed::next());
    let (mut by_route, mut by_upstream, mut free) = (0, 0, 0);
    for how in SETTINGS {
        let upstream = Upstream::start();
        let envoy = gateway(&upstream, how).start_shared();
        let paths: Vec<String> = (0..EACH).map(|_| spelling(&mut random)).collect();
        for served in served(&envoy, &upstream, &paths) {
            let reason = reason(&served);
            let case = format!("{} by {how:?}: {served:?}", served.path);
            assert!(reason.is_none() || served.is_limited, "{reason:?}, {case}");
            by_route += u32::from(reason == Some("its route"));
            by_upstream += u32::from(reason == Some("its upstream"));
            free += u32::from(!served.is_limited);
        }
        envoy.assert_unharmed();
    }
    println!("{by_route} by their route, {by_upstream} by their upstream, {free} free");
    assert!(by_route > 200 && by_upstream > 30 && free > 200, "the spellings tell little");
}

/// A random path that may lead to or away from `/hello`.
fn spelling(random: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 20] = [
        "hello", "hello", "h%65llo", "x", "x", "..", "..", "%2e%2e", ".%2E", ".", "%2f", "%2F",
        "%5c", "\\", ";", ";a=b", "%3b", "/", "/", "%20",
    ];
    let mut path = random.choice(["/hello", "/", "/", "/x/.."]).unwrap().to_owned();
    for _ in 0..random.u32(1..6) {
        if random.bool() {
            path.push('/');
        }
        path += random.choice(PIECES).unwrap();
    }
    path + random.choice(["", "", "/", "?y=1"]).unwrap()
}
