//! The response to a refused request, and the response to an admitted one.

use crate::harness::Gateway;

const RULES: &str = r#"
limits:
  - Url: /bucket
    rules: [{name: bucket, actor: all, unit: minute, rpu: 2, burst: 1, scope: local}]
  - Url: /own
    response: {status: 429, body: "slow down", content_type: text/x-plain, headers: {x-help: "ask us"}}
    rules: [{name: own, actor: all, unit: hour, rpu: 0, scope: local}]
"#;

#[test]
fn refused_request_gets_the_default_response() {
    let envoy = Gateway::with(RULES).start_shared();
    let accepted = envoy.get("/bucket", &[]);
    assert_eq!((accepted.status, &*accepted.body), (200, "upstream\n"));
    for name in ["retry-after", "x-envoy-ratelimited", "ratelimit-policy", "ratelimit"] {
        assert_eq!(accepted.header(name), None, "{name}");
    }
    // A permit is added every 30 s, possibly between two requests.
    let answers = (0..4).map(|_| envoy.get("/bucket", &[]));
    let refused = answers.into_iter().find(|answer| answer.status != 200).unwrap();
    assert_eq!((refused.status, refused.refused()), (503, true), "{refused:?}");
    assert!(!refused.body.is_empty() && refused.body.len() < 200, "{refused:?}");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{refused:?}");
    assert_eq!(refused.header("ratelimit-policy"), Some(r#""bucket";q=1;w=30"#));
    assert_eq!(refused.header("ratelimit"), Some(&*format!(r#""bucket";r=0;t={wait}"#)));
}

#[test]
fn refused_request_gets_the_configured_response() {
    let refused = Gateway::with(RULES).start_shared().get("/own", &[]);
    assert_eq!((refused.status, &*refused.body), (429, "slow down"));
    assert_eq!(refused.header("x-help"), Some("ask us"));
    assert_eq!(refused.header("content-type"), Some("text/x-plain"));
    assert!(refused.refused());
}
