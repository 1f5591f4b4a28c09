//! The conditions of an entry, with different spellings by clients.

use crate::harness::{Envoy, Gateway};

/// Fails unless the request is refused if, and only if, `is_meant` is true.
#[track_caller]
fn refuses(envoy: &Envoy, path: &str, headers: &[(&str, &str)], is_meant: bool) {
    let answer = envoy.get(path, headers);
    // Envoy itself refuses some as malformed, which is correct, too.
    let is_right =
        if is_meant { answer.refused() || answer.status == 400 } else { answer.status == 200 };
    assert!(is_right, "{path} {headers:?}: {answer:?}");
}

#[test]
fn spellings_of_parameters_and_cookies_escape_no_limit() {
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
