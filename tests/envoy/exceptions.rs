//! Exempt requests, and rules that do not refuse.

use crate::harness::{Gateway, Http2, Outcome};
use crate::metrics::settles;

#[test]
fn exempt_request_is_never_refused() {
    let envoy = Gateway::with(
        r#"
limits:
  - Url: /
    rules: [{name: all, actor: all, unit: hour, rpu: 0, scope: local}]
except: {addresses: [10.0.0.0/8, "2001:db8::/32"], paths: [/healthz], headers: {x-probe: {exact: "1"}}}
"#,
    )
    .trust_forwarded_for()
    .start_shared();
    for address in ["10.1.2.3", "2001:db8:7::1", "::ffff:10.0.0.1"] {
        assert_eq!(envoy.get("/", &[("x-forwarded-for", address)]).status, 200, "{address}");
    }
    for address in ["11.0.0.1", "2001:db9::1"] {
        assert_eq!(envoy.get("/", &[("x-forwarded-for", address)]).status, 503, "{address}");
    }
    assert_eq!(envoy.get("/healthz", &[]).status, 200);
    assert_eq!(envoy.get("/healthzz", &[]).status, 503);
    assert_eq!(envoy.get("/", &[("x-probe", "1")]).status, 200);
    assert_eq!(envoy.get("/", &[("x-probe", "12")]).status, 503);
    settles(&envoy, "rule.all.refused", 4);
    settles(&envoy, "rule.all.allowed", 0);
}

#[test]
fn exemption_matches_percent_encoded_values() {
    let envoy = Gateway::with(
        r#"
limits:
  - Url: /
    unless: [{query: {mailto: {contains: "@"}}}, {cookies: {city: "Sao Paulo"}}]
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
except: {paths: [/static, /café]}
"#,
    )
    .start_shared();
    let mut client = Http2::connect(envoy.port).unwrap();
    let mut check = |path: &str, headers: &[(&str, &str)], is_excepted: bool| {
        let answer = envoy.get(path, headers);
        // Envoy itself refuses some as malformed, which is correct, too.
        let is_right = if is_excepted {
            answer.status == 200
        } else {
            answer.refused() || answer.status == 400
        };
        assert!(is_right, "{path} {headers:?}: {answer:?}");
        client.request(path, headers, None);
        client.flush().unwrap();
        let (_, outcome) = client.answer().unwrap();
        assert_eq!(outcome == Outcome::Ok, is_excepted, "{path} {headers:?} over HTTP/2");
    };
    for path in [
        "/static/My%20File.png",
        "/static/100%25",
        "/static/c%23.pdf?x",
        "/caf%C3%A9",
        "/caf%c3%a9/menu",
        "/?mailto=ada%40example.com",
        "/x?a=b&mailto=ada%40example.com",
    ] {
        check(path, &[], true);
    }
    for path in [
        "/static/..%20/x",
        "/static/..%3fx",
        "/static/%252e%252e/x",
        "/static/..%252Fx",
        "/static/..%2Fx",
        "/static/..%5cx",
        "/static/..%3Bx/y",
        "/static/%C0%AE%c0%ae/x",
        "/static/x%00",
        "/static/x%0a",
        "/static/x%",
        "/caf%E9",
        "/caf%25C3%25A9",
        "/?mailto=ada",
        "/?mailto=%61da%40example.com&mailto=ada",
        "/?mailto=ada%2540example.com",
        "/?mailto=ada@example.com;mailto=ada",
        "/?mailt%6f=ada%40example.com",
    ] {
        check(path, &[], false);
    }
    check("/", &[("cookie", "city=Sao%20Paulo")], true);
    for cookie in [
        "city=Sao+Paulo",
        "city=S%61o%20Paulo",
        "city=Sao%2520Paulo",
        "city=\"Sao%20Paulo\"",
        "c%69ty=Sao%20Paulo",
    ] {
        check("/", &[("cookie", cookie)], false);
    }
    envoy.assert_unharmed();
}
