//! Which requests an entry is for, beyond its path, as callers may spell them.

use crate::harness::{Envoy, Gateway, Response};

/// What is refused by an entry with these conditions, and what is not.
#[track_caller]
fn refuses(envoy: &Envoy, path: &str, headers: &[(&str, &str)], is_meant: bool) {
    let answer = envoy.get(path, headers);
    // Envoy itself refuses some as malformed, which is no escape.
    let is_right =
        if is_meant { answer.refused() || answer.status == 400 } else { answer.status == 200 };
    assert!(is_right, "{path} {headers:?}: {answer:?}");
}

#[test]
fn spellings_of_parameters_and_cookies() {
    let envoy = Gateway::with(
        "
limits:
  - Url: /query
    match: {query: {format: {in: [big file, csv]}}}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
  - Url: /cookie
    match: {cookies: {beta: \"1\"}}
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
",
    )
    .start_shared();
    for query in [
        "format=csv",
        "format=big+file",
        "format=big%20file",
        "%66ormat=%63sv",
        "a=b&format=csv",
        "a=b;format=csv",
        "format=json&format=csv",
        "format=csv;x",
        "format=csv#x",
    ] {
        refuses(&envoy, &format!("/query?{query}"), &[], true);
    }
    for query in ["format=json", "formats=csv", "a=format=csv", "format", "", "format=csv2"] {
        refuses(&envoy, &format!("/query?{query}"), &[], false);
    }
    for cookies in [
        &["beta=1"][..],
        &["a=b; beta=1"],
        &["beta=\"1\""],
        &["beta=%31"],
        &["bet%61 = 1"],
        &["beta=\"\\061\""],
        &["beta=0; beta=1"],
        &["beta=0", "beta=1"],
    ] {
        let headers: Vec<(&str, &str)> = cookies.iter().map(|value| ("Cookie", *value)).collect();
        refuses(&envoy, "/cookie", &headers, true);
    }
    for cookie in ["beta=0", "xbeta=1", "a=beta=1", "beta"] {
        refuses(&envoy, "/cookie", &[("cookie", cookie)], false);
    }
    envoy.assert_unharmed();
}

#[test]
fn any_block_means_a_request_and_all_of_it_is_taken_out() {
    let envoy = Gateway::with(
        "
limits:
  - Url: [/a, /b/c]
    match: [{methods: [POST]}, {addresses: [192.0.2.0/24]}, {headers: {x-app: {contains: bot}}}]
    unless: {headers: {x-probe: \"1\"}}
    rules: [{name: few, actor: all, unit: hour, rpu: 2, algo: W}]
",
    )
    .trust_forwarded_for()
    .workers(2)
    .start_shared();
    let from = |address| [("x-forwarded-for", address)];
    refuses(&envoy, "/a", &from("198.51.100.1"), false);
    // Both paths, and all ways to be meant, share one count.
    refuses(&envoy, "/a", &from("192.0.2.9"), false);
    refuses(&envoy, "/b/c", &[("x-app", "a-bot-b")], false);
    refuses(&envoy, "/a/x", &[("x-app", "web"), ("x-app", "bot")], true);
    refuses(&envoy, "/b/c/", &from("192.0.2.9"), true);
    refuses(&envoy, "/b", &from("192.0.2.9"), false);
    refuses(&envoy, "/a", &[("x-app", "bot"), ("x-probe", "1")], false);
    refuses(&envoy, "/a", &[("x-app", "bot"), ("x-probe", "1"), ("X-Probe", "2")], true);
    envoy.assert_unharmed();
}

#[test]
fn the_deny_list_of_the_examples() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../envoy/examples/deny-list.yaml");
    let rules = std::fs::read_to_string(path).unwrap();
    let envoy = Gateway::with(&rules).trust_forwarded_for().start_shared();
    let status =
        |answer: Response| (answer.status, answer.header("retry-after").map(str::to_owned));
    for (path, headers) in [
        ("/", &[("x-forwarded-for", "198.51.100.7")][..]),
        ("/", &[("x-forwarded-for", "2001:db8:bad::1")]),
        ("/x?api_key=k-1234567890", &[]),
        ("/x?api%5fkey=k-%31234567890", &[]),
        ("/", &[("X-Api-Key", "k-0987654321")]),
        ("/", &[("user-agent", "badclient/1.0 (x)")]),
        ("/", &[("user-agent", "badclient/1.0"), ("x-deny-list", "off")]),
    ] {
        assert_eq!(status(envoy.get(path, headers)), (403, None), "{path} {headers:?}");
    }
    let staff =
        [("user-agent", "badclient/1.0"), ("x-deny-list", "off"), ("x-forwarded-for", "10.0.0.1")];
    for headers in [&staff[..], &[("user-agent", "goodclient/1.0")]] {
        assert_eq!(envoy.get("/", headers).status, 200);
    }
    envoy.assert_unharmed();
}
