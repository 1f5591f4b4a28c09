//! Usable and unusable responses.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::{EVERY, Gateway, LOCAL, SECOND, Server, document};

/// Each example with a response as documented by its server. The document replaces `{}`.
const EXAMPLES: &[(&str, &str)] = &[
    ("file", "{}"),
    (
        "etcd",
        r#"{"header":{"cluster_id":"12585971608760269493","member_id":"13847567121247652255",
        "revision":"2","raft_term":"3"},"kvs":[{"key":"ZGlhbmEvcnVsZXM=","create_revision":"2",
        "mod_revision":"2","version":"1","value":"{}"}],"count":"1"}"#,
    ),
    ("consul", "{}"),
    ("nacos", "{}"),
    ("apollo", r#"{"content":"{}"}"#),
];

#[test]
fn every_example_selects_its_document() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/remote");
    let mut files: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut names: Vec<String> = EXAMPLES.iter().map(|(name, _)| format!("{name}.yaml")).collect();
    names.sort();
    assert_eq!(files, names);
    for (name, answer) in EXAMPLES {
        let config = std::fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap();
        let text = document("a");
        let text = if is_encoded(&config) { BASE64_STANDARD.encode(text) } else { text };
        let mut gateway = Gateway::new(2, &config, Server::Serves(answer.replacen("{}", &text, 1)));
        gateway.run(SECOND);
        assert_eq!(gateway.rules(), ["a"; 2], "{name}");
    }
}

fn is_encoded(config: &str) -> bool {
    crate::config::policy(config).remote.unwrap().base64
}

/// `remote` with more settings.
fn with(settings: &str) -> String {
    format!("{}, {settings}}}", LOCAL.trim_end_matches('}'))
}

/// The current rule after the server's response, and the log lines.
fn after(settings: &str, answer: &str) -> (String, String) {
    let config = if settings.is_empty() { LOCAL.to_owned() } else { with(settings) };
    let mut gateway = Gateway::new(2, &config, Server::Serves(answer.into()));
    gateway.run(SECOND);
    assert_eq!(gateway.rules()[0], gateway.rules()[1]);
    let counts = ["rejected", "failed"].map(|what| gateway.count(what));
    assert_eq!(counts, [usize::from(gateway.rules()[0] == "own"), 0], "the alert reads them");
    (gateway.rules()[0].to_owned(), gateway.lines().join("\n"))
}

#[test]
fn document_is_extracted_as_configured() {
    let plain = document("a");
    let encoded = BASE64_STANDARD.encode(&plain);
    let (head, tail) = encoded.split_at(76);
    let longest = format!("{plain}{}", " ".repeat(1024 - plain.len()));
    let json = |value: &str| serde_json::json!({"kvs": [{"value": value}], "a/b": {"~": value}});
    let inline = r#"{"data": {"limits": [{"Url": "/", "rules":
        [{"name": "a", "actor": "all", "unit": "day", "rpu": 5}]}]}}"#;
    for (settings, answer) in [
        ("", plain.clone()),
        ("max_size: 1KiB", longest),
        ("base64: true", encoded.clone()),
        ("base64: true", format!("{head}\n{tail}\n")),
        ("base64: true", encoded.trim_end_matches('=').into()),
        ("value: /kvs/0/value", json(&plain).to_string()),
        ("value: /kvs/0/value, base64: true", format!("{:#}", json(&encoded))),
        ("value: /a~1b/~0", json(&plain).to_string()),
        ("value: /data", inline.into()),
    ] {
        assert_eq!(after(settings, &answer).0, "a", "{settings}: {answer}");
    }
}

#[test]
fn invalid_response_keeps_the_rules_and_is_logged() {
    let long = "#".repeat(2_000);
    let no_text = BASE64_STANDARD.encode(b"limits: []\n# \xff");
    for (settings, answer, reason) in [
        ("", "", "the document is empty"),
        ("", " \n", "the document is empty"),
        ("value: /a", "{\"a\": \"\"}", "the document is empty"),
        ("max_size: 1KiB", &long[..1025], "larger than `max_size`, 1024 bytes"),
        ("value: /kvs/0/value", "{\"header\": {}}", "the response has no value at `/kvs/0/value`"),
        ("value: /kvs/0/value", "{\"kvs\": []}", "the response has no value at `/kvs/0/value`"),
        ("value: /a", "limits: []", "the response has no value at `/a`"),
        ("base64: true", "limits: []", "not valid base64"),
        ("base64: true", &no_text, "not UTF-8 at offset 13"),
        ("", "limits: [", "not valid YAML"),
        ("", "<html>oops</html>", "allowed: a mapping such as"),
        (
            "",
            "limits: [{Url: /, rules: [{actor: all, unit: dya, rpu: 5}]}]",
            "limits[0].rules[0].unit",
        ),
        ("", "limits: []\nkeys: 5", "2:1 keys: only allowed in the gateway's own"),
    ] {
        let (rule, lines) = after(settings, answer);
        assert_eq!(rule, "own");
        assert!(lines.contains(reason), "{reason} is not in {lines}");
        assert!(lines.contains("; the gateway's own rules stay active"), "{lines}");
    }
}

#[test]
fn failures_keep_the_rules_and_are_logged_once() {
    for (server, reason) in [
        (Server::Responds(404), "status 404"),
        (Server::Responds(500), "status 500"),
        (Server::Responds(301), "status 301"),
        (Server::Responds(204), "status 204"),
        (Server::Responds(503), "if it cannot connect"),
        (Server::IsSilent, "after `timeout`"),
        (Server::IsLost, "no response arrived"),
        (Server::BreaksOff, "the connection was closed early"),
        (Server::CannotBeCalled, "no cluster"),
        (Server::Serves(String::new()), "empty"),
        (Server::Serves("limits: {}".into()), "is invalid"),
    ] {
        let mut gateway = Gateway::serving("a");
        gateway.run(2 * SECOND);
        gateway.lines();
        gateway.server = server.clone();
        gateway.run(5 * EVERY);
        assert_eq!(gateway.rules(), ["a"; 4], "{server:?}");
        let lines = gateway.lines();
        assert!(lines[0].contains(reason) && lines[0].ends_with(" stays active"), "{lines:?}");
        let count = lines.iter().filter(|line| line.contains("remote configuration of")).count();
        assert_eq!(count, 1, "{lines:?}");
        assert!(gateway.count("failed") + gateway.count("rejected") >= 4, "{server:?}");
        gateway.serve("a");
        gateway.run(EVERY + 2 * SECOND);
        let lines = gateway.lines();
        assert!(lines.len() == 1 && lines[0].contains("the last problem is solved"), "{lines:?}");
        gateway.serve("b");
        gateway.run(EVERY + SECOND);
        assert_eq!(gateway.rules(), ["b"; 4], "{server:?}");
    }
}

#[test]
fn problems_of_a_document_are_logged_once() {
    let bad = |unit: &str| {
        Server::Serves(format!(
            "limits: [{{Url: /, rules: [{{actor: all, unit: {unit}, rpu: 5}}]}}]"
        ))
    };
    let mut gateway = Gateway::serving("a");
    gateway.run(2 * SECOND);
    gateway.lines();
    let problems = |lines: &[String]| lines.iter().filter(|line| line.contains(".unit: ")).count();
    gateway.server = bad("dya");
    gateway.run(3 * EVERY);
    let lines = gateway.lines();
    assert_eq!((lines.len(), problems(&lines), gateway.count("rejected")), (2, 1, 3), "{lines:?}");
    for _ in 0..3 {
        gateway.server = Server::Responds(500);
        gateway.run(EVERY);
        gateway.server = bad("dya");
        gateway.run(EVERY);
    }
    let lines = gateway.lines();
    assert_eq!((lines.len(), problems(&lines)), (6, 0), "one line for each change: {lines:?}");
    gateway.server = bad("yda");
    gateway.run(EVERY);
    let lines = gateway.lines();
    assert_eq!((lines.len(), problems(&lines)), (2, 1), "{lines:?}");
    assert_eq!(gateway.rules(), ["a"; 4]);
}
