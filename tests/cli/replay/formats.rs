//! The same requests in every format have the same results.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{BEGIN, LoggedRequest, envoy, logged, name, written};
use crate::command::{diana, folder, with_input};

const RULES: &str = "
limits:
  - Url: /a
    rules: [{name: address, actor: address, unit: hour, rpu: 2, algo: W}]
  - {Url: /a, match: {methods: [GET]}, rules: [{name: agent, actor: agent, unit: hour, rpu: 1000, algo: W}]}
actors: {agent: [{header: user-agent}]}
";

fn log() -> Vec<LoggedRequest> {
    (0..12).map(|number| logged(BEGIN + number * 1000, "/a/b?c=d", number % 3)).collect()
}

fn istio(logged: &LoggedRequest) -> String {
    let LoggedRequest { at, path, account, took, status } = logged;
    format!(
        "[{}] \"GET {path} HTTP/1.1\" {status} - via_upstream - \"-\" 0 12 {took} 3 \"-\" \"curl/8.5.0\" \"cc21\" \"example.com\" \
         \"10.0.2.1:80\" outbound|80||x [fd00::1]:5555 [fd00::1]:443 10.0.0.{account}:4242 - default",
        written(*at)
    )
}

fn istio_json(logged: &LoggedRequest) -> String {
    json!({
        "start_time": written(logged.at), "method": "GET", "path": logged.path, "response_code": logged.status,
        "duration": logged.took, "response_flags": "-", "downstream_remote_address": format!("10.0.0.{}:42", logged.account),
        "user_agent": "curl/8.5.0", "authority": "example.com", "upstream_transport_failure_reason": null,
        "route_name": "d\u{e9}fault \"x\"",
    })
    .to_string()
}

fn gateway_json(logged: &LoggedRequest) -> String {
    json!({
        "start_time": written(logged.at), "method": "GET", "x-envoy-origin-path": logged.path,
        "response_code": logged.status, "duration": logged.took, "user-agent": "curl/8.5.0",
        "x-forwarded-for": format!("192.0.2.1,10.0.0.{}", logged.account), ":authority": "example.com",
    })
    .to_string()
}

fn common_time(at: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(at.cast_signed()).unwrap();
    // Five and a half hours behind.
    let local = at - jiff::SignedDuration::from_mins(330);
    local.strftime("%d/%b/%Y:%H:%M:%S -0530").to_string()
}

fn common(logged: &LoggedRequest) -> String {
    let (time, path) = (common_time(logged.at), &logged.path);
    format!("10.0.0.{} - - [{time}] \"GET {path} HTTP/1.0\" {} 12", logged.account, logged.status)
}

fn combined(logged: &LoggedRequest) -> String {
    format!("{} \"https://example.com/\" \"curl/8.5.0\"", common(logged))
}

/// A format: its name, and the function that writes a line.
type Format = (&'static str, fn(&LoggedRequest) -> String);

const FORMATS: [Format; 6] = [
    ("envoy", envoy),
    ("istio", istio),
    ("istio as JSON", istio_json),
    ("envoy gateway", gateway_json),
    ("common", common),
    ("combined", combined),
];

fn text(write: fn(&LoggedRequest) -> String) -> String {
    log().iter().map(|logged| write(logged) + "\n").collect()
}

fn check(report: &str, format: &str) {
    let report: Value =
        serde_json::from_str(report).unwrap_or_else(|error| panic!("{format}: {error}"));
    assert_eq!(report["log"]["bad"], 0, "{format}: {report:#}");
    let rule = &report["rules"]["by_rule"][0];
    let counts = ["consulted", "admitted", "refused"].map(|what| rule[what].as_u64().unwrap());
    assert_eq!(counts, [12, 6, 6], "{format}: {report:#}");
    let agents = report["rules"]["by_rule"][1]["admitted"].as_u64().unwrap();
    assert_eq!(agents, if format == "common" { 0 } else { 6 }, "{format}: {report:#}");
    assert_eq!(
        (&report["from"], &report["to"]),
        (&"2026-11-24T06:00:00Z".into(), &"2026-11-24T06:00:11Z".into())
    );
    // In order of the log's clock.
    let most = &report["rules"]["refused_most"];
    assert_eq!((most.as_array().unwrap().len(), &most[0]["times"]), (3, &2.into()), "{format}");
}

fn replay(bytes: &[u8]) -> String {
    let folder = folder(&[("rules.yaml", RULES)]);
    let log = folder.join("access.log");
    fs::write(&log, bytes).unwrap();
    let rules = folder.join("rules.yaml");
    let ran = diana(&["replay", name(&rules), name(&log), "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn file_may_mix_formats() {
    let lines = log().into_iter().enumerate().map(|(number, logged)| {
        let (_, write) = FORMATS[[1, 2, 3, 5][number % 4]];
        write(&logged) + if number % 2 == 0 { "\n" } else { "\r\n\n" }
    });
    check(&replay(lines.collect::<String>().trim_end().as_bytes()), "mixed");
}

#[test]
fn compression_is_detected_from_content() {
    for (format, write) in FORMATS {
        let text = text(write);
        check(&replay(&gzip(&text)), format);
        check(&replay(&zstandard(&text)), format);
    }
    // Concatenated, like rotated logs.
    let text = text(istio);
    let (first, second) = text.split_at(text.len() / 2);
    check(&replay(&[gzip(first), gzip(second)].concat()), "two of gzip");
    check(&replay(&[zstandard(first), zstandard(second)].concat()), "two frames");
}

#[test]
fn several_files_are_one_log() {
    let folder = folder(&[("rules.yaml", RULES)]);
    let lines = text(istio);
    let lines: Vec<&str> = lines.lines().collect();
    // Two gateways. The older lines of one are in a separate file.
    let every = |first: usize| lines.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
    let (even, odd) = (every(0), every(1));
    let files = [("b.log", odd), ("a.log", even[3..].to_vec()), ("a.log.1", even[..3].to_vec())];
    let mut names = Vec::new();
    for (file, lines) in files {
        fs::write(folder.join(file), lines.join("\n")).unwrap();
        names.push(name(&folder.join(file)).to_owned());
    }
    let rules = folder.join("rules.yaml");
    let mut arguments = vec!["replay", name(&rules), "--format", "json"];
    arguments.extend(names.iter().map(String::as_str));
    let ran = diana(&arguments);
    check(&ran.out, "several");
    assert!(ran.out.contains("\"late\": 0"), "{}", ran.out);
    // From standard input.
    let ran =
        with_input(&["replay", name(&rules), "-", "--format", "json"], text(istio).as_bytes());
    check(&ran.out, "standard input");
}

#[test]
fn requests_are_replayed_in_order_of_arrival() {
    // The first request of an account took long, so its line is the last one.
    let mut log = log();
    log[0].took = 20_000;
    log.rotate_left(1);
    let lines: String = log.iter().map(|logged| envoy(logged) + "\n").collect();
    let report: Value = serde_json::from_str(&replay(lines.as_bytes())).unwrap();
    let most = report["rules"]["refused_most"].as_array().unwrap();
    let first = most.iter().find(|caller| caller["caller"] == "10.0.0.0").unwrap();
    // Its third and fourth requests.
    assert_eq!(first["first"], "2026-11-24T06:00:06Z");
    assert_eq!(report["log"]["late"], 0);
}

#[test]
fn field_names_are_set_by_option() {
    let rules =
        "limits: [{Url: /, rules: [{name: it, actor: tenant, unit: hour, rpu: 1, algo: W}]}]
actors: {tenant: [{metadata: [acme, tenant]}]}";
    let line = |number: u64| {
        json!({
            "when": 1_795_500_000.25 + number as f64, "req": {"uri": "/x", "verb": "GET", "who": "zoe"}, "status": 200,
        })
        .to_string()
    };
    let folder = folder(&[("rules.yaml", rules), ("log", &(line(0) + "\n" + &line(1)))]);
    let (rules, log) = (folder.join("rules.yaml"), folder.join("log"));
    let set = ["time=when", "path=req.uri", "method=req.verb", "metadata:acme/tenant=req.who"];
    let mut arguments = vec!["replay", name(&rules), name(&log), "--format", "json"];
    set.iter().for_each(|set| arguments.extend(["--set", set]));
    let report: Value = serde_json::from_str(&diana(&arguments).out).unwrap();
    assert_eq!(report["rules"]["refused_most"][0]["caller"], "zoe", "{report:#}");
    assert_eq!(report["from"], "2026-11-24T06:00:00Z");
    let ran = diana(&["replay", name(&rules), name(&log), "--set", "colour=5"]);
    assert!(ran.code == Some(2) && ran.error.contains("header:NAME"), "{ran:?}");
}
