//! The functions that the page calls.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{convert, play, requests, why};

const RULES: &str = "
limits:
  - Url: /
    rules:
      - {name: six, actor: account, unit: minute, rpu: 6, burst: 3, algo: TB}
      - {name: all, actor: all, unit: minute, rpu: 20, algo: SW, scope: local,
         ban: {after: 10, within: 1m, for: 10s}}
  - Url: /slow
    rules:
      - {name: slow, actor: address, unit: second, rpu: 2, algo: LB, max_delay: 2s}
      - {name: flight, actor: all, in_flight: 3}
";

/// An experiment with each kind of traffic, on two gateways of two workers.
fn experiment() -> Value {
    let stream = |kind: &str, rate: f64, path: &str, takes: u32| {
        json!({
            "kind": kind, "rate": rate, "every": 5.0, "callers": 3, "takes": takes, "status": 200,
            "method": "GET", "path": path, "headers": [["X-Account-Id", "user-{n}"]],
        })
    };
    json!({
        "rules": RULES,
        "traffic": [
            stream("steady", 0.5, "/a", 10),
            stream("poisson", 1.0, "/b/{n}", 10),
            stream("bursts", 4.0, "/slow", 3_000),
        ],
        "log": "[2026-03-01T10:00:02.250Z] \"GET /a HTTP/1.1\" 200 - 0 3 1 0 \"10.0.0.1\" \"curl\" \"id\" \"example.com\" \"-\"\nno request",
        "seconds": 30.0, "gateways": 2, "workers": 2, "seed": 1,
        "algorithms": ["", "TB", "W", "SW"],
    })
}

/// JSON with one element of a list in a line, as far as the list has no further ones.
fn lines(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let mut lines = Vec::new();
    write(&answer, "", &mut lines);
    lines.join("\n")
}

fn write(value: &Value, place: &str, lines: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| write(value, &format!("{place}.{name}"), lines));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            lines.extend(items.iter().map(|item| format!("{place}: {item}")));
        }
        _ => lines.push(format!("{place}: {value}")),
    }
}

#[test]
fn experiment_has_the_same_outcome_each_time() {
    let played = play(&experiment().to_string());
    assert_eq!(played, play(&experiment().to_string()));
    assert_snapshot!(lines(&played));
}

#[test]
fn requests_of_a_moment_are_listed() {
    assert_snapshot!(lines(&requests(&experiment().to_string(), "", 9.0, 16.0)));
}

#[test]
fn decision_is_explained_by_each_rule() {
    assert_snapshot!(lines(&why(&experiment().to_string(), "", 42)));
    let error = why(&experiment().to_string(), "", 10_000);
    assert_eq!(error, r#"{"error":"the experiment has no such request"}"#);
}

#[test]
fn experiment_out_of_bounds_is_refused() {
    for (field, value, why) in [
        ("seconds", json!(0), "found 0 s"),
        ("gateways", json!(1000), "found 2000 workers"),
        ("seconds", json!(86_400), "at most 100000 requests"),
        ("rules", json!("limits: 5"), "limits"),
    ] {
        let mut experiment = experiment();
        experiment["traffic"][0]["rate"] = json!(2);
        experiment[field] = value;
        let played = play(&experiment.to_string());
        assert!(played.contains("\"error\"") && played.contains(why), "{played}");
    }
}

/// Two zones at a place, of which a refused request charges neither; `limit_conn` is charged after
/// both.
const ORIGINAL: &str = "
limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
limit_req_zone $host zone=b:1m rate=3r/s;
limit_conn_zone $binary_remote_addr zone=c:1m;
server {
  server_name shop.example.com;
  location /cart { limit_req zone=a burst=5 nodelay; limit_req zone=b burst=9 nodelay; limit_conn c 2; }
}
";

#[test]
fn original_and_rules_decide_about_the_same_requests() {
    let converted: Value = serde_json::from_str(&convert(ORIGINAL)).unwrap();
    let mut experiment = experiment();
    experiment["rules"] = converted["rules"].clone();
    experiment["original"] = json!(ORIGINAL);
    experiment["algorithms"] = json!(["", "original"]);
    experiment["traffic"] = json!([{
        "kind": "bursts", "rate": 20.0, "every": 2.0, "callers": 2, "takes": 1_000, "status": 200,
        "method": "GET", "path": "/cart", "headers": [["host", converted["host"]]],
    }]);
    experiment["log"] = json!("");
    assert_snapshot!(lines(&play(&experiment.to_string())));
    assert!(convert("limits: 5").contains("no limits"));
}
