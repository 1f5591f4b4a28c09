//! Settings of Envoy that affect Diana, as docs/guides/envoy-settings.md describes them.

mod filters;
mod held;

use std::io::Write;

use serde_json::{Value, json};

use crate::harness::{Client, Gateway, Upstream, hcm_filter, request};
use crate::metrics::settles;

/// A route for all paths to an upstream service, with further keys.
fn route(upstream: &Upstream, mut more: Value) -> Value {
    more["match"] = json!({"prefix": "/"});
    more["route"]["cluster"] = upstream.cluster().into();
    more
}

fn routes(all: &[Value]) -> Value {
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": all}]})
}

/// A rule that admits two requests, for all paths.
const TWO: &str = "limits: [{Url: /, rules: [{name: two, actor: all, unit: day, rpu: 2, algo: W, scope: gateway}]}]";

const DISABLED: &str = "type.googleapis.com/envoy.config.route.v3.FilterConfig";

#[test]
fn route_that_removes_the_header_of_a_cost_costs_the_maximum() {
    const RULES: &str = "
limits:
- Url: /
  rules: [{name: tokens, actor: account, unit: day, rpu: 10000, algo: W,
    cost: {response: {header: x-tokens-used}, reserve: 100, max: 300}}]";
    let model = || {
        Upstream::answering(|_, to| {
            to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-tokens-used: 42\r\n\r\n")
        })
    };
    let removal = json!({"mutations": {"response_mutations": [{"remove": "x-tokens-used"}]}});
    let mutation = hcm_filter(
        "envoy.filters.http.header_mutation",
        "header_mutation",
        "HeaderMutation",
        removal,
    );
    let on_route = model();
    let removes = json!({"response_headers_to_remove": ["x-tokens-used"]});
    let routes = routes(&[route(&on_route, removes)]);
    let gateway = || Gateway::with(RULES);
    for (gateway, metric, permits) in [
        (gateway().before(&on_route).routed(routes, json!({})), "debt", 200),
        (gateway().before(&model()).ahead_of(mutation.clone()), "debt", 200),
        (gateway().before(&model()).behind(mutation), "refunded", 58),
    ] {
        let envoy = gateway.start_shared();
        let answer = envoy.get("/", &[("x-account-id", "a")]);
        assert_eq!((answer.status, answer.header("x-tokens-used")), (200, None));
        settles(&envoy, &format!("rule.tokens.{metric}"), permits);
    }
}

#[test]
fn disabled_route_has_no_limit_and_keeps_forged_marks() {
    let upstream = Upstream::start();
    let disabled = json!({"diana": {"@type": DISABLED, "disabled": true}});
    let on = |path: &str, more: Value| {
        let mut route = route(&upstream, more);
        route["match"]["prefix"] = path.into();
        route["typed_per_filter_config"] = disabled.clone();
        route
    };
    let remove = json!({"request_headers_to_remove": ["x-mark", "x-explain"]});
    let all = [on("/free", json!({})), on("/clean", remove), route(&upstream, json!({}))];
    let rules = format!(
        "mark: x-mark\nexplain: {{header: x-explain, token_env: T}}\nadmin: {{path: /free/admin, token_env: T}}\n{TWO}"
    );
    let token = "0123456789abcdef";
    let envoy = Gateway::with(&rules)
        .variable("T", token)
        .before(&upstream)
        .routed(routes(&all), json!({}))
        .start_shared();
    let headers = [("x-mark", "forged"), ("x-explain", token), ("authorization", "Bearer x")];
    let last = |path: &str| {
        let arrivals = upstream.arrivals();
        let last = arrivals.into_iter().rfind(|arrival| arrival.path == path).expect("it came");
        ["x-mark", "x-explain"].map(|name| last.header(name).map(str::to_owned))
    };
    assert_eq!(envoy.statuses(5, "/free", &headers), [200; 5]);
    assert_eq!(last("/free"), ["forged", token].map(|value| Some(value.to_owned())));
    assert_eq!(envoy.statuses(5, "/clean", &headers), [200; 5]);
    assert_eq!(last("/clean"), [None, None]);
    // Operators reach the upstream.
    assert_eq!(envoy.get("/free/admin/rules", &headers).body, "ok\n");
    assert_eq!(envoy.statuses(3, "/other", &headers), [200, 200, 503]);
    assert_eq!(last("/other"), [None, None]);
}

/// The first status in reply to an upload that the client announces with `expect`.
fn announced(gateway: &Gateway) -> Option<u16> {
    let envoy = gateway.start_shared();
    assert_eq!(envoy.statuses(2, "/", &[]), [200; 2]);
    let mut client = Client::connect(envoy.port).unwrap();
    let headers = [("expect", "100-continue"), ("content-length", "5")];
    client.write(&request("POST", "/", &headers)).unwrap();
    client.wait().unwrap()
}

#[test]
fn announced_upload_is_refused_before_it_begins() {
    let gateway = |settings| {
        let upstream = Upstream::start();
        let all = routes(&[route(&upstream, json!({}))]);
        Gateway::with(TWO).before(&upstream).routed(all, settings)
    };
    assert_eq!(announced(&gateway(json!({}))), Some(100));
    assert_eq!(announced(&gateway(json!({"proxy_100_continue": true}))), Some(503));
}

#[test]
fn methods_are_those_of_the_request_line() {
    let rules = TWO.replace("Url: /,", "Url: /, match: {methods: [GET]},");
    let envoy = Gateway::with(&rules).start_shared();
    assert_eq!(envoy.statuses(3, "/", &[]), [200, 200, 503]);
    let send = |method: &str| {
        let mut client = Client::connect(envoy.port).unwrap();
        let headers = [("x-http-method-override", "GET"), ("content-length", "0")];
        client.write(&request(method, "/", &headers)).unwrap();
        client.wait().unwrap()
    };
    assert_eq!(["HEAD", "POST", "OPTIONS"].map(send), [Some(200); 3]);
}
