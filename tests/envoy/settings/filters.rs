//! Other filters: caches, and those that change responses or read bodies.

use serde_json::{Value, json};

use super::{TWO, route, routes};
use crate::harness::{Client, Gateway, Response, Upstream, hcm_filter, request};

/// A cache in memory, and its name in the types of Envoy.
fn cache(package: &str, message: &str, simple: &str) -> Value {
    let kind = format!(
        "type.googleapis.com/envoy.extensions.http.{package}.simple_http_cache.v3.{simple}"
    );
    let config = json!({"typed_config": {"@type": kind}});
    hcm_filter(&format!("envoy.filters.http.{package}"), package, message, config)
}

fn caches() -> [Value; 2] {
    [
        cache("cache", "CacheConfig", "SimpleHttpCacheConfig"),
        cache("cache_v2", "CacheV2Config", "SimpleHttpCacheV2Config"),
    ]
}

/// A `custom_response` that answers one status by another one.
fn custom_response(from: &str, to: u16) -> Value {
    let kind = |name: &str| format!("type.googleapis.com/envoy.{name}");
    let input = json!({"@type": kind("type.matcher.v3.HttpResponseStatusCodeMatchInput")});
    let policy = json!({
        "@type": kind("extensions.http.custom_response.local_response_policy.v3.LocalResponsePolicy"),
        "status_code": to,
        "body": {"inline_string": "sorry"},
    });
    let matcher = json!({
        "predicate": {"single_predicate": {
            "input": {"name": "status", "typed_config": input},
            "value_match": {"exact": from},
        }},
        "on_match": {"action": {"name": "answer", "typed_config": policy}},
    });
    let config = json!({"custom_response_matcher": {"matcher_list": {"matchers": [matcher]}}});
    hcm_filter("envoy.filters.http.custom_response", "custom_response", "CustomResponse", config)
}

/// A mapper of local replies from one status to another one.
fn mapped(from: u16, to: u16) -> Value {
    let status = json!({"op": "EQ", "value": {"default_value": from, "runtime_key": "none"}});
    let filter = json!({"status_code_filter": {"comparison": status}});
    json!({"local_reply_config": {"mappers": [{"filter": filter, "status_code": to}]}})
}

#[test]
fn cache_behind_diana_is_counted() {
    for cache in caches() {
        let upstream = Upstream::start();
        let envoy = Gateway::with(TWO).before(&upstream).ahead_of(cache).start_shared();
        assert_eq!(envoy.statuses(4, "/", &[]), [200, 200, 503, 503]);
    }
}

#[test]
fn cache_before_diana_hides_requests() {
    for cache in caches() {
        let upstream = Upstream::start();
        let envoy = Gateway::with(TWO).before(&upstream).behind(cache).start_shared();
        let paths = ["/a", "/b", "/c", "/d"];
        assert_eq!(paths.map(|path| envoy.get(path, &[]).status), [200; 4]);
        assert_eq!(upstream.arrivals().len(), 4);
        let known = [("authorization", "Bearer x")];
        assert_eq!(envoy.statuses(3, "/a", &known), [200, 200, 503]);
    }
}

#[track_caller]
fn refused(gateway: &Gateway) -> Response {
    let envoy = gateway.start_shared();
    assert_eq!(envoy.statuses(2, "/", &[]), [200; 2]);
    envoy.get("/", &[])
}

#[test]
fn custom_response_takes_the_headers_of_a_refusal() {
    let gateway = Gateway::with(TWO);
    let custom = custom_response("503", 418);
    for gateway in [gateway.clone().behind(custom.clone()), gateway.ahead_of(custom)] {
        let answer = refused(&gateway);
        assert_eq!((answer.status, answer.body.as_str()), (418, "sorry"));
        assert_eq!(["retry-after", "ratelimit"].map(|name| answer.header(name)), [None, None]);
    }
}

#[test]
fn local_reply_config_keeps_the_headers_of_a_refusal() {
    let upstream = Upstream::start();
    let all = routes(&[route(&upstream, json!({}))]);
    let answer = refused(&Gateway::with(TWO).before(&upstream).routed(all, mapped(503, 418)));
    assert_eq!(answer.status, 418);
    assert!(["retry-after", "ratelimit"].iter().all(|name| answer.header(name).is_some()));
}

#[test]
fn counted_status_is_that_of_the_client() {
    let rules = TWO.replace("algo: W,", "algo: W, count: {status: [401]},");
    let script =
        "function envoy_on_request(request) request:respond({[':status'] = '401'}, 'no') end";
    let script = json!({"default_source_code": {"inline_string": script}});
    let denies = hcm_filter("envoy.filters.http.lua", "lua", "Lua", script);
    let gateway = Gateway::with(&rules).ahead_of(denies);
    let upstream = Upstream::start();
    let all = routes(&[route(&upstream, json!({}))]);
    assert_eq!(gateway.start_shared().statuses(3, "/", &[]), [401, 401, 503]);
    let custom = custom_response("401", 403);
    let mapped = gateway.clone().before(&upstream).routed(all, mapped(401, 403));
    for gateway in [gateway.clone().behind(custom.clone()), gateway.ahead_of(custom), mapped] {
        assert_eq!(gateway.start_shared().statuses(5, "/", &[]), [403; 5]);
    }
}

#[test]
fn buffer_before_diana_takes_the_whole_upload() {
    let limit = json!({"max_request_bytes": 4 << 20});
    let buffer = hcm_filter("envoy.filters.http.buffer", "buffer", "Buffer", limit);
    let envoy = Gateway::with(TWO).behind(buffer).start_shared();
    assert_eq!(envoy.statuses(2, "/", &[]), [200; 2]);
    let body = vec![b'x'; 2 << 20];
    let mut bytes = request("POST", "/", &[("content-length", &body.len().to_string())]);
    bytes.extend(body);
    let mut client = Client::connect(envoy.port).unwrap();
    client.write(&bytes).unwrap();
    let answer = client.read().unwrap();
    // The connection stays open.
    assert_eq!((answer.status, answer.header("connection")), (503, None));
}
