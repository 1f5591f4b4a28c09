//! Outcomes and usage of gRPC, in trailers or in the headers of a response without messages.

use serde_json::json;

use super::local_replies::filters;
use super::upstream::{self, ACT};
use super::{left, left_after};
use crate::harness::{Client, Envoy, Gateway, eventually, exchange, hcm_filter, request};
use crate::metrics::settles;

const LIMIT: u64 = 10_000;
const RESERVE: u64 = 100;
const MOST: u64 = 300;
const PATH: &str = "/shop.Login/Check";

fn rules() -> String {
    format!(
        "accepted: {{headers: true}}
limits:
- Url: {PATH}
  rules: [{{name: denied, actor: account, unit: day, rpu: {LIMIT}, algo: W, scope: gateway, cost: {RESERVE}, count: {{grpc_status: [7, 16]}}}}]
- Url: /shop.Cart
  rules: [{{name: used, actor: account, unit: day, rpu: {LIMIT}, algo: SW, scope: gateway,
    cost: {{response: {{trailer: x-used}}, reserve: {RESERVE}, max: {MOST}, error: 9}}}}]
- Url: /
  rules: [{{name: places, actor: all, in_flight: 3, scope: gateway, expose: false}}]"
    )
}

fn call(envoy: &Envoy, path: &str, headers: &[(&str, &str)], leaves: bool) {
    let mut client = Client::connect(envoy.port).unwrap();
    let headers =
        [headers, &[("content-type", "application/grpc"), ("content-length", "0")]].concat();
    client.write(&request("POST", path, &headers)).unwrap();
    if leaves {
        client.wait().unwrap();
        client.reset();
    } else {
        _ = client.read();
    }
}

#[test]
fn grpc_outcomes_and_usage_are_settled_once() {
    let service = upstream::start();
    let gateway = Gateway::with(&rules()).workers(2).cluster("upstream", service.port);
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "20s"}}]}]});
    let envoy = filters(gateway.of_trailers().routed(routes, json!({}))).start();
    let (denied, cart) = (PATH, "/shop.Cart/Add");
    let probe = [(denied, "rpc 0"), (cart, "rpc 0 used 0")];
    for (number, (path, act, more, leaves, used)) in [
        (denied, "rpc 16", None, false, RESERVE),
        (denied, "rpc 7", None, false, RESERVE),
        (denied, "denied 16", None, false, RESERVE),
        (denied, "rpc 0", None, false, 0),
        (denied, "rpc 13", None, false, 0),
        (denied, "denied 5", None, false, 0),
        (denied, "status 401", None, false, 0),
        // Headers before messages are no trailers.
        (denied, "denied 16 size 9", None, false, 0),
        (denied, "denied 0 hang", None, true, RESERVE),
        (denied, "rpc 16 cut", None, false, 0),
        (denied, "rpc 16 hang", None, true, RESERVE),
        // Another filter's reply has the status of gRPC in its headers: 7 for 403.
        (denied, "rpc 0", Some(("x-denied", "yes")), false, RESERVE),
        (denied, "rpc 0", Some(("x-envoy-fault-abort-request", "503")), false, 0),
        (cart, "rpc 0 used 40", None, false, 40),
        (cart, "rpc 0 used 400", None, false, MOST),
        (cart, "rpc 0", None, false, MOST),
        (cart, "rpc 13", None, false, 9),
        (cart, "denied 13", None, false, 9),
        (cart, "denied 0 used 40", None, false, 40),
        (cart, "denied 0 used 40 size 9", None, false, MOST),
        (cart, "denied 13 size 9", None, false, MOST),
        (cart, "rpc 0 used 40 cut", None, false, MOST),
        (cart, "rpc 0 used 40 hang", None, true, MOST),
        (cart, "rpc 0 used 40", Some(("x-denied", "yes")), false, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let account = number.to_string();
        let mut headers = vec![("x-account-id", &*account), (ACT, act)];
        headers.extend(more);
        call(&envoy, path, &headers, leaves);
        let (_, free) = probe.iter().find(|(known, _)| *known == path).unwrap();
        eventually(&format!("{used} used by {path} {act} {more:?}"), || {
            let left = left(&envoy, path, &[("x-account-id", &account), (ACT, free)]);
            (LIMIT - RESERVE - left == used).then_some(())
        });
    }
    settles(&envoy, "rule.places.in_flight", 0);
    envoy.assert_unharmed();
}

/// Behind such a filter Diana sees gRPC, so wrong passwords count, and refusals are translated.
#[test]
fn grpc_outcomes_count_behind_filters_that_translate() {
    let service = upstream::start();
    let bridge = "connect_grpc_bridge";
    let version = ("connect-protocol-version", "1");
    let rules = format!(
        "accepted: {{headers: true}}
limits: [{{Url: {PATH}, rules: [{{actor: all, unit: day, rpu: 5, algo: W, scope: gateway, count: {{grpc_status: [16]}}}}]}}]"
    );
    for (filter, kind, refused) in [
        (
            hcm_filter("envoy.filters.http.grpc_web", "grpc_web", "GrpcWeb", json!({})),
            "application/grpc-web+proto",
            (200, Some("8")),
        ),
        (
            hcm_filter(&format!("envoy.filters.http.{bridge}"), bridge, "FilterConfig", json!({})),
            "application/proto",
            (429, None),
        ),
    ] {
        let gateway = Gateway::with(&rules).cluster("upstream", service.port).of_trailers();
        let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": "upstream"}}]}]});
        let envoy = gateway.routed(routes, json!({})).behind(filter).start();
        let post = |act: &str| {
            let headers = [("content-type", kind), version, (ACT, act), ("content-length", "0")];
            exchange(envoy.port, &request("POST", PATH, &headers)).unwrap()
        };
        for counted in 1..5 {
            post(if counted % 2 == 0 { "rpc 16" } else { "denied 16" });
            eventually(&format!("{counted} counted, {kind}"), || {
                (left_after(&post("rpc 0")) == 5 - counted - 1).then_some(())
            });
        }
        post("rpc 16");
        // The end of a stream may follow its response.
        eventually(&format!("a refusal, {kind}"), || {
            let answer = post("rpc 0");
            ((answer.status, answer.header("grpc-status")) == refused).then_some(())
        });
        envoy.assert_unharmed();
    }
}
