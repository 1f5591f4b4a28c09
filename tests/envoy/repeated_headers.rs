//! Repeated header fields that Envoy joins into one before the filter sees them.

use diana_policy::spelling::header::{LISTS, SINGLE};
use serde_json::{Value, json};

use crate::harness::{Envoy, Gateway, Upstream};

/// Headers that Envoy leaves as several fields.
const APART: &[&str] = &[
    "accept-language",
    "api-key",
    "baggage",
    "client-id",
    "content-language",
    "date",
    "forwarded",
    "from",
    "idempotency-key",
    "proxy-authorization",
    "range",
    "sec-fetch-site",
    "session-id",
    "traceparent",
    "tracestate",
    "true-client-ip",
    "x-account-id",
    "x-api-key",
    "x-auth-token",
    "x-b3-traceid",
    "x-client-id",
    "x-correlation-id",
    "x-csrf-token",
    "x-device-id",
    "x-plan",
    "x-real-ip",
    "x-requested-with",
    "x-tenant-id",
    "x-user-id",
];

/// A gateway that preserves the headers of proxies, with a service as upstream.
fn before(upstream: &Upstream, rules: &str) -> Envoy {
    let settings = json!({"use_remote_address": false});
    Gateway::with(rules).before(upstream).routed(Value::Null, settings).start_shared()
}

#[test]
fn repeated_headers_are_joined_as_the_module_expects() {
    let upstream = Upstream::start();
    let envoy = before(&upstream, "limits: []");
    let names = || [SINGLE, LISTS, APART].into_iter().flatten().copied();
    for name in names() {
        let path = format!("/{name}");
        assert_eq!(envoy.get(&path, &[(name, "a"), (name, "b")]).status, 200, "{name}");
    }
    let arrivals = upstream.arrivals();
    let joined = names().filter(|name| {
        let arrival = arrivals.iter().find(|arrival| arrival.path == format!("/{name}"));
        let fields = arrival.unwrap().headers.iter().filter(|(field, _)| field == name);
        let values: Vec<_> = fields.map(|(_, value)| value.as_str()).collect();
        assert!(matches!(values[..], ["a,b"] | ["a", "b"]), "{name}: {values:?}");
        values.len() == 1
    });
    let expected: Vec<&str> = [SINGLE, LISTS].concat();
    assert_eq!(joined.collect::<Vec<_>>(), expected);
}

#[test]
fn repeated_header_creates_no_new_caller() {
    let names = || SINGLE.iter().chain(APART);
    let (mut limits, mut actors) = (String::new(), String::new());
    for name in names() {
        limits += &format!(
            "- {{Url: /h/{name}, rules: [{{actor: by-{name}, unit: day, rpu: 2, algo: W, scope: local}}]}}\n"
        );
        actors += &format!("  by-{name}: [{{header: {name}}}]\n");
    }
    let upstream = Upstream::start();
    let envoy = before(&upstream, &format!("limits:\n{limits}actors:\n{actors}"));
    for name in names() {
        let path = format!("/h/{name}");
        let statuses =
            ["1", "2", "3"].map(|other| envoy.get(&path, &[(name, "a"), (name, other)]).status);
        assert_eq!(statuses, [200, 200, 503], "{name}");
    }
}
