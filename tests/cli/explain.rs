//! `diana explain`.

use std::fs;

use serde_json::{Value, json};

use crate::command::{Ran, diana, folder, root};

const RULES: &str = "
except: {paths: [/healthz]}
limits:
  - Url: /
    rules: [{name: all, actor: all, unit: minute, rpu: 9, algo: W}]
  - Url: /a
    rules:
      - {name: a, actor: account, unit: minute, rpu: 2, algo: W, scope: local}
      - {name: a-tenant, actor: tenant, unit: minute, rpu: 2, algo: W}
      - {name: a-not-ann, actor: account, unit: minute, rpu: 1, except: {headers: {x-account-id: ann}}}
  - {Url: /a, match: {methods: [POST], hosts: [example.com]}, rules: [{name: post, actor: address, unit: minute, rpu: 7}]}
  - {Url: /slow, rules: [{name: slow, actor: all, unit: second, rpu: 2, algo: LB}]}
response: {status: 429}
actors: {tenant: [{header: x-tenant}]}
";

fn ran(arguments: &[&str]) -> Ran {
    let folder = folder(&[("rules.yaml", RULES)]);
    let file = folder.join("rules.yaml");
    diana(&[&["explain", file.to_str().unwrap()], arguments].concat())
}

fn told(arguments: &[&str]) -> Value {
    let ran = ran(&[arguments, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

/// What a rule says: its decision, or why it has none.
fn says(told: &Value, rule: &str) -> String {
    let rules = told["rules"].as_array().unwrap();
    let [record] = rules.iter().filter(|one| one["rule"] == rule).collect::<Vec<_>>()[..] else {
        panic!("{rule} is not told once in {told:#}")
    };
    record.get("why").unwrap_or(&record["decision"]).as_str().unwrap().to_owned()
}

#[test]
fn each_rule_says_what_it_decides_or_why_it_does_not() {
    let told = told(&["--url", "/a/1", "-H", "X-Account-Id: ann"]);
    let rules = ["all", "a", "a-tenant", "a-not-ann", "post", "slow"];
    let said = rules.map(|rule| says(&told, rule));
    assert_eq!(said, ["admitted", "admitted", "absent", "exempt", "match", "path"], "{told:#}");
    assert_eq!(told["rules"].as_array().unwrap().len(), rules.len());
    assert_eq!(told["callers"][0], json!({"actor": "account", "source": "header", "value": "ann"}));
}

#[test]
fn the_whole_request_counts() {
    let whole = told(&[
        "--url",
        "https://example.com/a?b=c",
        "--method",
        "post",
        "--address",
        "::ffff:192.0.2.7",
    ]);
    assert_eq!(says(&whole, "post"), "admitted");
    let address = json!({"actor": "address", "source": "client_address", "value": "192.0.2.7"});
    assert!(whole["callers"].as_array().unwrap().contains(&address), "{whole:#}");
    let by_header = told(&[
        "--url",
        "/a",
        "--method",
        "POST",
        "-H",
        "Host: example.com",
        "--address",
        "2001:db8::1",
    ]);
    assert_eq!(says(&by_header, "post"), "admitted");
    assert_eq!(says(&told(&["--url", "/a", "--method", "POST"]), "post"), "match");
    assert_eq!(says(&told(&["--url", "/healthz"]), "all"), "exempt");
}

/// A window admits so many and no more, and says when it ends.
#[test]
fn the_last_of_several_is_explained() {
    let after = |times: &str| {
        told(&[
            "--url",
            "/a",
            "-H",
            "x-account-id: bob",
            "--at",
            "2026-11-24T21:38:34Z",
            "--times",
            times,
        ])
    };
    let first = after("1");
    assert_eq!((&first["decision"], &first["status"]), (&"admitted".into(), &Value::Null));
    // The one that `a-not-ann`, a bucket of one, refuses; `a` would admit it.
    let second = after("2");
    assert_eq!((&second["decision"], &second["status"]), (&"refused".into(), &429.into()));
    assert_eq!(
        (says(&second, "a"), says(&second, "a-not-ann")),
        ("admitted".into(), "refused".into())
    );
    let by_window =
        |times: &str| told(&["--url", "/", "--at", "2026-11-24T21:38:34Z", "--times", times]);
    assert_eq!(by_window("9")["decision"], "admitted");
    let refused = by_window("10");
    assert_eq!(
        (&refused["decision"], &refused["rules"][0]["wait"]),
        (&"refused".into(), &26.into())
    );
}

#[test]
fn a_request_that_is_held_says_for_how_long() {
    let held = told(&["--url", "/slow", "--times", "3"]);
    let slow =
        held["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "slow").unwrap();
    assert_eq!((&held["decision"], &slow["wait"]), (&"held".into(), &1.into()), "{held:#}");
}

#[test]
fn people_are_told_in_words() {
    let Ran { out, code, .. } =
        ran(&["--url", "/a", "-H", "x-account-id: b\u{1b}[31mob", "--times", "2"]);
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with("The request is refused with 429, by the rule `a-not-ann`; again in 60 s."),
        "{out}"
    );
    assert!(
        out.contains(
            "post       does not apply: its entry covers the path, but its `match` does not hold"
        ),
        "{out}"
    );
    assert!(
        !out.contains('\u{1b}') && out.contains("account: b\\u{1b}[31mob (by header)"),
        "{out}"
    );
}

#[test]
fn what_cannot_be_explained_is_said() {
    for (arguments, why) in [
        (&["--url", "a"][..], "allowed: a path such as"),
        (&["--url", "/", "-H", "no-colon"], "a name, a colon and a value"),
        (&["--url", "/", "--address", "300.1.1.1"], "allowed: an address"),
        (&["--url", "/", "--at", "2025-02-29T00:00:00Z"], "allowed: an instant"),
        (&["--url", "/", "--at", "yesterday"], "allowed: an instant"),
        (&["--url", "/", "--times", "0"], "--times"),
    ] {
        let ran = ran(arguments);
        assert!(ran.code == Some(2) && ran.error.contains(why) && ran.out.is_empty(), "{ran:?}");
    }
    let folder = folder(&[("bad.yaml", "limits: 5"), ("two.yaml", "limits: []")]);
    let of = |path: &str| diana(&["explain", folder.join(path).to_str().unwrap(), "--url", "/"]);
    let bad = of("bad.yaml");
    assert!(bad.code == Some(1) && bad.error.contains("`diana check"), "{bad:?}");
    let several = of("");
    assert!(several.code == Some(2) && several.error.contains("in 2 places"), "{several:?}");
}

#[test]
fn the_guide_shows_what_is_said() {
    let guide = fs::read_to_string(root().join("docs/guides/command.md")).unwrap();
    let (_, rest) = guide.split_once("$ diana explain ").unwrap();
    let (command, rest) = rest.split_once('\n').unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    // Quotes hold together what has spaces.
    let mut words = Vec::new();
    for (number, part) in command.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace()),
            _ => words.push(part),
        }
    }
    assert_eq!(diana(&[&["explain"][..], &words].concat()).out, shown);
}
