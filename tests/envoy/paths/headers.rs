//! No spelling of a method, a host or a key header escapes a limit, including over HTTP/2.

use crate::harness::{Gateway, Http2, Outcome};

#[test]
fn lowercase_method_over_http2_escapes_no_limit() {
    let envoy = Gateway::with(
        "
limits:
  - Url: /
    match: {methods: [POST]}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
",
    )
    .start_shared();
    let mut client = Http2::connect(envoy.port).unwrap();
    let mut outcome = |method: &str| {
        let id = client.send(method, "/", &[], Some(b"{}"));
        client.flush().unwrap();
        let (ended, outcome) = client.answer().unwrap();
        assert_eq!(ended, id);
        outcome
    };
    for method in ["POST", "post", "pOST"] {
        assert_ne!(outcome(method), Outcome::Ok, "{method}");
    }
    assert_eq!(outcome("PUT"), Outcome::Ok);
    envoy.assert_unharmed();
}

#[test]
fn spaces_around_a_key_over_http2_escape_no_limit() {
    let envoy = Gateway::with(
        "
limits:
  - Url: /
    rules: [{actor: account, unit: hour, rpu: 1, scope: local}]
",
    )
    .start_shared();
    let mut client = Http2::connect(envoy.port).unwrap();
    let mut outcome = |account: &str| {
        client.request("/", &[("x-account-id", account)], None);
        client.flush().unwrap();
        client.answer().unwrap().1
    };
    assert_eq!(outcome("ada"), Outcome::Ok);
    for account in [" ada", "ada ", "\tada", "  ada  "] {
        assert_ne!(outcome(account), Outcome::Ok, "{account:?}");
    }
    assert_eq!(outcome("bob"), Outcome::Ok);
}

#[test]
fn spellings_of_a_host_escape_no_limit() {
    let envoy = Gateway::with(
        r#"
limits:
  - Url: /
    match: {hosts: ["*.example.com", "[2001:db8::1]"]}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
"#,
    )
    .start_shared();
    for host in [
        "shop.example.com",
        "SHOP.Example.com",
        "shop.example.com:80",
        "shop.example.com.",
        "shop.example.com.:8443",
        "u:p@shop.example.com",
        "shop.ex%61mple.com",
        "[2001:db8::1]",
        "[2001:0DB8:0:0::1]:80",
    ] {
        let answer = envoy.get("/", &[("host", host)]);
        // Envoy itself refuses some as malformed, which is correct, too.
        assert!(answer.refused() || answer.status == 400, "{host} escaped: {answer:?}");
    }
    for host in ["example.com", "shop.example.com.evil.org", "[2001:db8::2]", "shop.example.org"] {
        assert_eq!(envoy.get("/", &[("host", host)]).status, 200, "{host}");
    }
}

#[test]
fn repeated_header_escapes_no_limit() {
    let envoy = Gateway::with(
        "
limits:
  - Url: /not
    match: {headers: {x-app: {not: internal}}}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
  - Url: /list
    match: {headers: {accept: text/html}}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
  - Url: /free
    except: {headers: {x-probe: '1'}}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
",
    )
    .start_shared();
    let status = |path, headers: &[(&str, &str)]| envoy.get(path, headers).status;
    assert_eq!(status("/not", &[("x-app", "internal")]), 200);
    assert_eq!(status("/not", &[("x-app", "mobile"), ("x-app", "internal")]), 503);
    // Envoy joins the fields of this header.
    assert_eq!(status("/list", &[("accept", "text/plain"), ("accept", "text/html")]), 503);
    assert_eq!(status("/list", &[("accept", "text/plain"), ("accept", "text/css")]), 200);
    assert_eq!(status("/free", &[("x-probe", "1")]), 200);
    assert_eq!(status("/free", &[("x-probe", "1"), ("x-probe", "2")]), 503);
}
