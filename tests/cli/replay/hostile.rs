//! Invalid and partly invalid logs.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{BEGIN, envoy, logged, name};
use crate::command::{Ran, diana, ends_quietly_without_reader, folder, with_input};

const RULES: &str =
    "limits: [{Url: /, rules: [{name: it, actor: address, unit: hour, rpu: 1, algo: W}]}]";

fn replay(bytes: &[u8], more: &[&str]) -> Ran {
    let folder = folder(&[("rules.yaml", RULES)]);
    let rules = folder.join("rules.yaml");
    with_input(&[&["replay", name(&rules), "-"], more].concat(), bytes)
}

#[test]
fn bad_lines_are_counted_and_shown() {
    let good = envoy(&logged(BEGIN, "/", 1));
    let text = format!(
        "{good}\nnonsense \u{1b}[31m\n{{\"a\": 1}}\n{{\n[2026-13-01T00:00:00Z] \"GET / H\" 200\n{good}"
    );
    let ran = replay(text.as_bytes(), &[]);
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""));
    for part in [
        "2 requests from",
        "4 of 6 lines are not requests; the first:",
        "standard input:2: it has no time: nonsense \\u{1b}[31m",
        "standard input:3: it has no time: {\"a\": 1}",
        "standard input:4: it is not a JSON object: {",
    ] {
        assert!(ran.out.contains(part), "{part} is missing in {}", ran.out);
    }
    assert!(!ran.out.contains("input:5") && !ran.out.contains('\u{1b}'), "{}", ran.out);
}

#[test]
fn file_without_requests_is_refused() {
    for bytes in [&b""[..], b"\n\n", b"hello\n", &[0xff; 100], b"\x1f\x8b", b"\x28\xb5\x2f\xfd\0"] {
        let ran = replay(bytes, &[]);
        let is_said = ran.error.contains("no line of the log is a request")
            || ran.error.contains("standard input: ");
        assert!(ran.code == Some(2) && ran.out.is_empty() && is_said, "{ran:?}");
    }
    let folder = folder(&[("rules.yaml", RULES), ("bad.yaml", "limits: 5"), ("log", "")]);
    let path = |file: &str| name(&folder.join(file)).to_owned();
    let missing = diana(&["replay", &path("rules.yaml"), &path("missing.log")]);
    assert!(missing.code == Some(2) && missing.error.contains("missing.log: "), "{missing:?}");
    let bad = diana(&["replay", &path("bad.yaml"), &path("log")]);
    assert!(bad.code == Some(1) && bad.error.contains("`diana check"), "{bad:?}");
}

#[test]
fn truncated_file_is_reported_up_to_its_end() {
    let lines: String =
        (0..20_000).map(|number| envoy(&logged(BEGIN + number, "/", number)) + "\n").collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let ran = replay(&gzip[..gzip.len() / 2], &["--format", "json"]);
    assert_eq!(ran.code, Some(2));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let count = report["log"]["lines"].as_u64().unwrap();
    assert!((1000..19_000).contains(&count) && report["log"]["is_whole"] == false, "{report:#}");
    let note = format!("standard input: cannot be read beyond line {}: ", count + 1);
    assert!(report["notes"][0].as_str().unwrap().starts_with(&note), "{:#}", report["notes"]);
}

/// A file need not fit into memory.
#[test]
fn overlong_line_is_skipped() {
    let good = envoy(&logged(BEGIN, "/", 1));
    let long = "x".repeat(3 << 20);
    let ran = replay(format!("{good}\n{long}\n{good}\n{long}").as_bytes(), &["--format", "json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&report["log"]["lines"], &report["log"]["bad"]),
        (&4.into(), &2.into()),
        "{report:#}"
    );
    assert_eq!(report["log"]["bad_examples"][0]["why"], "longer than 1 MiB");
    // A long line below the maximum is valid.
    let path = format!("/{}", "y".repeat(100_000));
    let ran = replay(envoy(&logged(BEGIN, &path, 1)).as_bytes(), &[]);
    assert!(ran.out.starts_with("1 request from"), "{ran:?}");
}

#[test]
fn backward_clock_is_reported() {
    let mut lines: Vec<String> =
        (0..100).map(|at| envoy(&logged(BEGIN + at * 1000, "/", 1))).collect();
    lines.push(envoy(&logged(BEGIN - 3_600_000, "/", 2)));
    lines.push(envoy(&logged(BEGIN + 100_000, "/", 1)));
    let ran = replay(lines.join("\n").as_bytes(), &["--format", "json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["log"]["late"], 1, "{report:#}");
    let latest = report["log"]["latest"].as_f64().unwrap();
    assert!((3600.0..3700.0).contains(&latest), "{latest}");
    assert_eq!(report["from"], "2026-11-24T06:00:00Z");
    // A line far in the future does not delay the processing of others.
    lines.insert(50, envoy(&logged(BEGIN + 86_400_000_000, "/", 3)));
    let ran = replay(lines.join("\n").as_bytes(), &["--format", "json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&report["log"]["late"], &report["to"]),
        (&1.into(), &"2029-08-20T06:00:00Z".into())
    );
}

#[test]
fn interrupt_prints_the_report_so_far() {
    let folder = folder(&[("rules.yaml", RULES)]);
    let rules = folder.join("rules.yaml");
    let mut child = Command::new(env!("CARGO_BIN_EXE_diana"))
        .args(["replay", name(&rules), "-", "--decisions", name(&folder.join("decisions"))])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Writes until the command ends.
    let feed = std::thread::spawn(move || {
        let line = |number: u64| envoy(&logged(BEGIN + number * 100, "/", number % 100)) + "\n";
        (0..).take_while(|number| stdin.write_all(line(*number).as_bytes()).is_ok()).count()
    });
    while !fs::metadata(folder.join("decisions")).is_ok_and(|it| it.len() > 0) {
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{out}");
    assert!(
        out.contains("requests from") && out.contains("interrupted: the report covers"),
        "{out}"
    );
    assert!(feed.join().unwrap() > 0);
}

#[test]
fn closed_pipe_ends_replay_quietly() {
    let folder = folder(&[("rules.yaml", RULES), ("log", &envoy(&logged(BEGIN, "/", 1)))]);
    let (rules, log) = (folder.join("rules.yaml"), folder.join("log"));
    ends_quietly_without_reader(&["replay", name(&rules), name(&log)]);
}
