//! Configured reports to callers and the upstream: problems, ids, and marks of shadow rules.

use serde_json::{Value, json};

use crate::harness::{Envoy, Gateway, Response, Upstream};
use crate::metrics::settles;

fn example() -> Envoy {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../envoy/examples/problem-json.yaml");
    let rules = std::fs::read_to_string(path).unwrap();
    // Windows of a day, so that the result does not depend on the time of the test, except at
    // midnight.
    Gateway::with(&rules.replace("unit: minute, rpu: 60, near", "unit: day, rpu: 5, algo: W, near"))
        .start_shared()
}

fn get(envoy: &Envoy, headers: &[(&str, &str)]) -> Response {
    envoy.get("/api", &[&[("x-account-id", "ada")], headers].concat())
}

#[test]
fn example_responds_with_problem_json() {
    let envoy = example();
    let number = |answer: &Response, name: &str| {
        answer.header(name).map(|text| text.parse::<u64>().unwrap())
    };
    for left in (0..5).rev() {
        let accepted = get(&envoy, &[]);
        assert_eq!(accepted.status, 200, "{accepted:?}");
        let found =
            ["limit", "remaining"].map(|what| number(&accepted, &format!("x-ratelimit-{what}")));
        assert_eq!(found, [Some(5), Some(left)]);
        assert!((1..=86_400).contains(&number(&accepted, "x-ratelimit-reset").unwrap()));
    }
    let refused = get(&envoy, &[("x-request-id", "a-1_B.2")]);
    assert_eq!(
        (refused.status, refused.header("content-type")),
        (429, Some("application/problem+json"))
    );
    assert!(refused.refused());
    let (after, reset) =
        (number(&refused, "retry-after").unwrap(), number(&refused, "x-ratelimit-reset").unwrap());
    assert!((reset..=reset + 6).contains(&after), "{refused:?}");
    assert_eq!(refused.header("ratelimit"), None);
    let found: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(
        found,
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Quota exceeded",
            "status": 429,
            "detail": format!("api-minute lets 5 through; come again in {after} s. This was request a-1_B.2."),
            "violated-policies": ["api-minute"],
        })
    );
    settles(&envoy, "rule.api-minute.near", 1);
    envoy.assert_unharmed();
}

/// The marks that the upstream received with the last request for this path.
fn marks(upstream: &Upstream, path: &str) -> Vec<String> {
    let arrival =
        upstream.arrivals().into_iter().rfind(|arrival| arrival.path == path).expect("it came");
    let marks = arrival.headers.into_iter().filter(|(name, _)| name == "x-diana-limited");
    marks.map(|(_, value)| value).collect()
}

#[test]
fn upstream_gets_marks_of_refusing_shadow_rules() {
    let upstream = Upstream::start();
    let envoy = Gateway::with(
        "
limits:
  - Url: /a
    rules:
      - {name: one, actor: account, unit: day, rpu: 1, algo: W, shadow: true}
      - {name: two, actor: account, unit: day, rpu: 2, algo: W, shadow: true}
  - Url: /held
    rules:
      - {name: line, actor: all, unit: second, rpu: 10, algo: LB, scope: local, max_delay: 20s}
      - {name: dark, actor: account, unit: day, rpu: 1, algo: W, shadow: true}
      - {name: slow, actor: account, unit: minute, rpu: 10, algo: LB, max_delay: 20s, shadow: true}
except: {paths: [/free], headers: {x-probe: \"1\"}}
mark: X-Diana-Limited
",
    )
    .before(&upstream)
    .start_shared();
    let forged: [&[(&str, &str)]; 4] = [
        &[],
        &[("x-diana-limited", "one")],
        &[("X-Diana-Limited", "one, two"), ("x-DIANA-limited", "two")],
        &[("x-diana-limited", "")],
    ];
    let ask = |path: &str, headers: &[(&str, &str)]| {
        let headers = [&[("x-account-id", "ada")], headers].concat();
        assert_eq!(envoy.get(path, &headers).status, 200);
        marks(&upstream, path)
    };
    // Clients cannot forge the mark on any path.
    for forged in forged {
        for path in ["/free", "/free/x", "/other"] {
            assert_eq!(ask(path, forged), [""; 0], "{path} {forged:?}");
        }
        assert_eq!(ask("/a", &[forged, &[("x-probe", "1")]].concat()), [""; 0]);
    }
    assert_eq!(ask("/a", forged[2]), [""; 0]);
    assert_eq!(ask("/a", forged[2]), ["one"]);
    assert_eq!(ask("/a", forged[1]), ["one, two"]);
    // Held requests, too.
    assert_eq!(ask("/held", forged[1]), [""; 0]);
    for _ in 0..2 {
        assert_eq!(ask("/held", forged[2]), ["dark"]);
    }
    settles(&envoy, "rule.two.shadow_refused", 1);
    settles(&envoy, "rule.slow.shadow_held", 2);
    envoy.assert_unharmed();
}

#[test]
fn access_log_has_limit_remaining_and_reset() {
    let envoy = Gateway::with(
        "
limits: [{Url: /, rules: [{name: day, actor: all, unit: day, rpu: 1, algo: W, scope: local}]}]
accepted: {headers: true, filter_state: true}
",
    )
    .start_shared();
    let accepted = envoy.get("/", &[]);
    let found = accepted.header("ratelimit").unwrap();
    assert!(found.starts_with("\"day\";r=0;t="), "{found}");
    assert_eq!(envoy.get("/", &[]).status, 503);
    let lines = crate::harness::eventually("two lines in the access log", || {
        let lines = envoy.access_log();
        (lines.len() >= 2).then_some(lines)
    });
    for line in lines {
        assert!(line.contains(" limit=1 remaining=0 reset="), "{line}");
    }
}
