//! Refusals of RPC requests, as their clients receive them.

use serde_json::json;

use crate::harness::{Envoy, Gateway, Response, exchange, hcm_filter, request};

const RULES: &str = "
limits: [{Url: /, rules: [{name: never, actor: all, unit: second, rpu: 0, scope: local}]}]
response: {status: 429, problem: true, body: '9 % by {rule}'}";

const VERSION: (&str, &str) = ("connect-protocol-version", "1");
const ERROR: &str = r#"{"code":"resource_exhausted","message":"9 % by never"}"#;
const MESSAGE: &str = "9 %25 by never";
/// The trailers of gRPC-Web, in binary and in base64.
const WEB: &[u8] = b"\x80\0\0\0\x47grpc-status:8\r\ngrpc-message:9 %25 by never\r\n\
    grpc-retry-pushback-ms:-1\r\n";
const WEB_TEXT: &str = "gAAAAEdncnBjLXN0YXR1czo4DQpncnBjLW1lc3NhZ2U6OSAlMjUgYnkgbmV2ZXINCmdycGMtcmV0cnktcHVzaGJhY2stbXM6LTENCg==";

/// All headers except those of every response.
fn headers(response: &Response) -> Vec<(&str, &str)> {
    let mut headers: Vec<_> = response
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !["date", "server"].contains(name))
        .collect();
    headers.sort_unstable();
    headers
}

/// The headers of a refusal with this content type and additional headers.
fn refusal<'h>(content_type: &'h str, more: &[(&'h str, &'h str)]) -> Vec<(&'h str, &'h str)> {
    let mut headers = vec![
        ("cache-control", "no-store"),
        ("content-type", content_type),
        ("ratelimit", r#""never";r=0"#),
        ("ratelimit-policy", r#""never";q=0;w=1"#),
        ("x-envoy-ratelimited", "true"),
    ];
    headers.extend(more);
    headers.sort_unstable();
    headers
}

#[test]
fn rpc_refusals_follow_their_protocol() {
    let envoy = Gateway::with(RULES).start_shared();
    let post = |content_type: &str, more: &[(&str, &str)]| {
        let headers = [&[("content-type", content_type), ("content-length", "0")], more].concat();
        exchange(envoy.port, &request("POST", "/shop.Cart/Add", &headers)).unwrap()
    };
    let grpc = [
        ("grpc-status", "8"),
        ("grpc-message", MESSAGE),
        ("grpc-retry-pushback-ms", "-1"),
        ("content-length", "0"),
    ];
    for kind in ["application/grpc", "application/grpc+proto"] {
        let refused = post(kind, &[]);
        assert_eq!((refused.status, &*refused.body), (200, ""), "{kind}");
        assert_eq!(headers(&refused), refusal("application/grpc", &grpc), "{kind}");
    }
    let web = String::from_utf8_lossy(WEB);
    let lengths = [WEB.len().to_string(), WEB_TEXT.len().to_string()];
    for (kind, body, length) in [
        ("application/grpc-web", &*web, &lengths[0]),
        ("application/grpc-web+proto", &*web, &lengths[0]),
        ("application/grpc-web-text", WEB_TEXT, &lengths[1]),
        ("application/grpc-web-text+proto", WEB_TEXT, &lengths[1]),
    ] {
        let refused = post(kind, &[]);
        assert_eq!((refused.status, &*refused.body), (200, body), "{kind}");
        assert_eq!(headers(&refused), refusal(kind, &[("content-length", length)]), "{kind}");
    }
    let length = ERROR.len().to_string();
    for (kind, more) in [
        ("application/proto", &[][..]),
        ("application/proto", &[VERSION]),
        ("application/json", &[VERSION]),
        ("application/json; charset=utf-8", &[VERSION]),
    ] {
        let refused = post(kind, more);
        assert_eq!((refused.status, &*refused.body), (429, ERROR), "{kind}");
        assert_eq!(headers(&refused), refusal("application/json", &[("content-length", &length)]));
    }
    let end = format!("\u{2}\0\0\0\u{40}{{\"error\":{ERROR}}}");
    let length = end.len().to_string();
    for kind in ["application/connect+proto", "application/connect+json"] {
        let refused = post(kind, &[VERSION]);
        assert_eq!((refused.status, &*refused.body), (200, &*end), "{kind}");
        assert_eq!(headers(&refused), refusal(kind, &[("content-length", &length)]));
    }
    for kind in ["application/json", "application/grpcx", "text/plain"] {
        let refused = post(kind, &[]);
        assert_eq!(refused.status, 429, "{kind}");
        assert_eq!(refused.header("content-type"), Some("application/problem+json"), "{kind}");
        assert_eq!(refused.header("grpc-status"), None, "{kind}");
    }
}

/// A shared cache gives a response with status 200 to all, unless `cache-control` forbids it.
#[test]
fn other_methods_get_the_plain_refusal() {
    let envoy = Gateway::with(RULES).start_shared();
    for method in ["GET", "PUT", "OPTIONS"] {
        for kind in ["application/grpc-web", "application/proto", "application/connect+json"] {
            let headers = [("content-type", kind), ("content-length", "0"), VERSION];
            let refused = exchange(envoy.port, &request(method, "/", &headers)).unwrap();
            assert_eq!(refused.status, 429, "{method} {kind}");
            assert_eq!(refused.header("content-type"), Some("application/problem+json"));
            assert_eq!(refused.header("cache-control"), Some("no-store"), "{method} {kind}");
        }
        // Envoy encodes this one itself, for any method.
        let headers = [("content-type", "application/grpc"), ("content-length", "0")];
        let refused = exchange(envoy.port, &request(method, "/", &headers)).unwrap();
        assert_eq!((refused.status, refused.header("grpc-status")), (200, Some("8")), "{method}");
        assert_eq!(refused.header("cache-control"), Some("no-store"), "{method}");
    }
}

/// Such a filter has changed the content type before Diana reads it, and converts the response.
#[test]
fn filters_that_translate_to_grpc_translate_refusals() {
    let web = hcm_filter("envoy.filters.http.grpc_web", "grpc_web", "GrpcWeb", json!({}));
    let envoy = Gateway::with(RULES).behind(web).start_shared();
    let post = |envoy: &Envoy, headers: &[(&str, &str)]| {
        let headers = [headers, &[("content-length", "0")]].concat();
        exchange(envoy.port, &request("POST", "/shop.Cart/Add", &headers)).unwrap()
    };
    let refused = post(&envoy, &[("content-type", "application/grpc-web+proto")]);
    assert_eq!((refused.status, &*refused.body), (200, ""));
    assert_eq!(refused.header("content-type"), Some("application/grpc-web+proto"));
    assert_eq!(refused.header("grpc-status"), Some("8"));
    assert_eq!(refused.header("grpc-message"), Some(MESSAGE));

    let bridge = "connect_grpc_bridge";
    let name = format!("envoy.filters.http.{bridge}");
    let bridge = hcm_filter(&name, bridge, "FilterConfig", json!({}));
    let envoy = Gateway::with(RULES).behind(bridge).start_shared();
    let refused = post(&envoy, &[("content-type", "application/json"), VERSION]);
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert!(refused.body.contains("\"resource_exhausted\""), "{refused:?}");
}
