//! Timeouts of Envoy, and requests that Diana holds.

use serde_json::{Value, json};

use super::{route, routes};
use crate::harness::{Client, Gateway, Http2, Upstream, eventually, request};

/// Slots that are fifteen seconds apart.
const SLOW: &str = "limits: [{Url: /, rules: [{name: line, actor: all, unit: minute, rpu: 4, algo: LB, max_delay: 20s, max_queue: 9}]}]";

/// The status of a held request that Envoy ends, and the reason.
#[track_caller]
fn ended(settings: Value, on_route: Value) -> (u16, String) {
    let upstream = Upstream::start();
    let all = routes(&[route(&upstream, on_route)]);
    let gateway = Gateway::with(SLOW).before(&upstream).routed(all, settings);
    let envoy = gateway.start_shared();
    // Takes the free slot. On a busy machine it may time out, too.
    envoy.get("/first", &[]);
    let answer = envoy.get("/held", &[]);
    assert!(upstream.arrivals().iter().all(|arrival| arrival.path == "/first"));
    let line = eventually("the access log", || {
        envoy.access_log().into_iter().find(|line| line.contains("held rule=line"))
    });
    (answer.status, line.split(' ').nth(1).unwrap().to_owned())
}

#[test]
fn timeouts_of_streams_end_held_requests() {
    let brief = json!("0.2s");
    let on_route = |key: &str, value: Value| json!({"route": {key: value}});
    for (settings, on_route, reason) in [
        (json!({"request_timeout": brief}), json!({}), "request_overall_timeout"),
        (json!({"stream_idle_timeout": brief}), json!({}), "stream_idle_timeout"),
        (
            json!({"common_http_protocol_options": {"max_stream_duration": brief}}),
            json!({}),
            "max_duration_timeout",
        ),
        (
            json!({}),
            on_route("max_stream_duration", json!({"max_stream_duration": brief})),
            "max_duration_timeout",
        ),
        (json!({}), on_route("idle_timeout", brief.clone()), "stream_idle_timeout"),
    ] {
        assert_eq!(ended(settings, on_route), (504, reason.to_owned()));
    }
}

#[test]
fn deadline_of_a_grpc_client_ends_its_held_request() {
    let upstream = Upstream::start();
    let limit = json!({"route": {"max_stream_duration": {"grpc_timeout_header_max": "0s"}}});
    let all = routes(&[route(&upstream, limit)]);
    let envoy = Gateway::with(SLOW).before(&upstream).routed(all, json!({})).start_shared();
    assert_eq!(envoy.get("/first", &[]).status, 200);
    let mut client = Http2::connect(envoy.port).unwrap();
    let headers =
        [("content-type", "application/grpc"), ("te", "trailers"), ("grpc-timeout", "200m")];
    client.request("/shop.Cart/Add", &headers, Some(b"\0\0\0\0\0"));
    client.flush().unwrap();
    client.answer().unwrap();
    let ends = |line: &String| line.contains(" max_duration_timeout held rule=line");
    eventually("the access log", || envoy.access_log().iter().any(ends).then_some(()));
    assert_eq!(upstream.arrivals().len(), 1);
}

#[test]
fn timeout_of_a_route_begins_behind_diana() {
    // The second slot is half a second after the first one.
    let rules = SLOW.replace("unit: minute, rpu: 4", "unit: second, rpu: 2");
    let upstream = Upstream::start();
    let all = routes(&[route(&upstream, json!({"route": {"timeout": "0.1s"}}))]);
    let envoy = Gateway::with(&rules).before(&upstream).routed(all, json!({})).start_shared();
    let mut clients = [(); 2].map(|()| Client::connect(envoy.port).unwrap());
    for client in &mut clients {
        client.write(&request("GET", "/", &[])).unwrap();
    }
    // A slow upstream may time out, but it gets the request.
    eventually("both requests", || (upstream.arrivals().len() == 2).then_some(()));
}
