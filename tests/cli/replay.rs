//! `diana replay`.

mod formats;
mod hostile;
mod recipes;
mod reports;
mod settlement;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::{Ran, diana, folder, root, with_input};

/// A request of a test. Times are milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct LoggedRequest {
    pub at: u64,
    pub path: String,
    pub account: u64,
    pub took: u64,
    pub status: u16,
}

/// A request of one millisecond with status 200.
pub fn logged(at: u64, path: &str, account: u64) -> LoggedRequest {
    LoggedRequest { at, path: path.into(), account, took: 1, status: 200 }
}

/// Tuesday, 24 November 2026, 06:00:00 UTC, in milliseconds.
pub const BEGIN: u64 = 1_795_500_000_000;

/// An instant in the format of Envoy.
pub fn written(at: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(at.cast_signed()).unwrap();
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// A line in Envoy's default format. The account is also the client address.
pub fn envoy(logged: &LoggedRequest) -> String {
    let LoggedRequest { at, path, account, took, status } = logged;
    let [.., b, c, d] = account.to_be_bytes();
    format!(
        "[{}] \"GET {path} HTTP/2\" {status} - 0 12 {took} 3 \"203.0.113.9, 10.{b}.{c}.{d}\" \"curl/8.5.0 (x \"y\")\" \
         \"cc21d9b0-cf5c\" \"example.com\" \"10.0.2.1:80\" \"account-{account}\"",
        written(*at)
    )
}

/// Writes rules and a log in Envoy's default format.
pub fn files(rules: &str, log: &[LoggedRequest]) -> (PathBuf, String, String) {
    let lines: Vec<String> = log.iter().map(envoy).collect();
    let folder = folder(&[("rules.yaml", rules), ("access.log", &(lines.join("\n") + "\n"))]);
    let name = |file: &str| folder.join(file).to_str().unwrap().to_owned();
    let (rules, log) = (name("rules.yaml"), name("access.log"));
    (folder, rules, log)
}

/// The report about a log under these rules. Column 14 has the account.
pub fn report(rules: &str, log: &[LoggedRequest], more: &[&str]) -> Value {
    let (_, rules, log) = files(rules, log);
    let ran = diana(
        &[&["replay", &rules, &log, "--format", "json", "--set", "header:x-account-id=14"], more]
            .concat(),
    );
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

/// The decision about each request in order of arrival, with its wait in microseconds.
pub fn decisions(rules: &str, log: &[LoggedRequest]) -> Vec<(String, u64)> {
    let (folder, rules, log) = files(rules, log);
    let lines = folder.join("decisions");
    let set = "header:x-account-id=14";
    let ran = diana(&["replay", &rules, &log, "--set", set, "--decisions", name(&lines)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(lines).unwrap();
    let decision = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let wait = (line["wait"].as_f64().unwrap() * 1e6).round() as u64;
        (line["decision"].as_str().unwrap().to_owned(), wait)
    };
    text.lines().map(decision).collect()
}

pub fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A count of a rule in a report.
pub fn count(report: &Value, rule: &str, what: &str) -> u64 {
    let rules = report["rules"]["by_rule"].as_array().unwrap();
    let found = rules.iter().find(|one| one["rule"] == rule);
    found
        .and_then(|rule| rule[what].as_u64())
        .unwrap_or_else(|| panic!("{rule}: {what} in {report:#}"))
}

const RULES: &str = "
limits:
  - Url: /
    rules:
      - {name: all, actor: all, unit: day, rpu: 1000, algo: W}
      - {name: account, actor: account, unit: minute, rpu: 2, algo: W}
  - {Url: /held, rules: [{name: held, actor: account, unit: second, rpu: 2, algo: LB}]}
  - {Url: /later, rules: [{name: later, actor: all, unit: minute, rpu: 1, algo: W, shadow: true}]}
";

#[test]
fn report_counts_decisions_of_each_rule() {
    let mut log: Vec<LoggedRequest> =
        (0..3).map(|number| logged(BEGIN + number, "/a", 1)).collect();
    log.extend((0..2).map(|number| logged(BEGIN + 10 + number, "/held", 2)));
    log.extend((0..2).map(|number| logged(BEGIN + 20 + number, "/later", 3 + number)));
    let report = report(RULES, &log, &[]);
    let counts = |rule: &str| {
        ["consulted", "admitted", "refused", "beside", "held", "shadow_refused"]
            .map(|what| count(&report, rule, what))
    };
    assert_eq!(counts("all"), [7, 6, 0, 1, 0, 0]);
    assert_eq!(counts("account"), [7, 6, 1, 0, 0, 0]);
    assert_eq!(counts("held"), [2, 2, 0, 0, 1, 0]);
    assert_eq!(counts("later"), [2, 1, 0, 0, 0, 1]);
    let all = &report["rules"]["all"];
    assert_eq!(
        (&all["admitted"], &all["refused"], &all["held"]),
        (&6.into(), &1.into(), &1.into())
    );
    let most = &report["rules"]["refused_most"][0];
    assert_eq!((&most["caller"], &most["rule"]), (&"account-1".into(), &"account".into()));
    let shadowed = &report["rules"]["shadow_refused_most"];
    assert_eq!((&shadowed[0]["caller"], &shadowed[0]["rule"]), (&"all".into(), &"later".into()));
    assert_eq!((shadowed.as_array().map(Vec::len), &shadowed[0]["times"]), (Some(1), &1.into()));
    assert_eq!(report["notes"], serde_json::json!([]));
}

/// Each gateway counts alone, and the report has the refusals of rules in shadow of all.
#[test]
fn thousand_gateways_share_the_requests() {
    let rule = |name: &str, more: &str| {
        format!("{{name: {name}, actor: all, unit: day, rpu: 1, scope: gateway, algo: W{more}}}")
    };
    let rules = [rule("it", ""), rule("later", ", shadow: true")].join(", ");
    let rules = format!("limits: [{{Url: /, rules: [{rules}]}}]");
    let log: Vec<LoggedRequest> = (0..3000).map(|number| logged(BEGIN + number, "/", 1)).collect();
    let admitted = |gateways: &str| {
        let report = report(&rules, &log, &["--gateways", gateways]);
        let [once, shadow] = ["admitted", "refused"].map(|what| count(&report, "it", what));
        assert_eq!(once + shadow, 3000);
        assert_eq!(count(&report, "later", "shadow_refused"), shadow);
        once
    };
    assert_eq!(admitted("1"), 1);
    // Of a thousand, some get no request.
    assert!((900..1000).contains(&admitted("1000")));
}

/// A rule in shadow shows the same callers and the same curve as if it refused.
#[test]
fn rules_in_shadow_have_callers_and_a_curve() {
    let log: Vec<LoggedRequest> =
        (0..40).map(|number| logged(BEGIN + number * 900, "/a", number % 3)).collect();
    let of = |shadow: &str| {
        let rules = format!(
            "{shadow}limits: [{{Url: /, rules: [{{name: a, actor: account, unit: minute, rpu: 4, algo: W}}, \
             {{name: b, actor: address, unit: minute, rpu: 2, algo: W}}]}}]"
        );
        let (_, rules, log) = files(&rules, &log);
        let run = |format| {
            let set = "header:x-account-id=14";
            diana(&["replay", &rules, &log, "--set", set, "--format", format]).out
        };
        (run("text"), serde_json::from_str::<Value>(&run("json")).unwrap())
    };
    let (text, report) = of("shadow: true\n");
    assert!(text.contains("Would be refused in shadow per 1s, at most "), "{text}");
    assert!(text.contains("Most refused in shadow, of 6 callers:"), "{text}");
    // Both rules refuse, since in shadow neither keeps requests from the other.
    let most = report["rules"]["shadow_refused_most"].as_array().unwrap().iter();
    let most: Vec<String> = most.map(|it| format!("{} {}", it["rule"], it["times"])).collect();
    let expected = ["\"b\" 12", "\"b\" 11", "\"b\" 11", "\"a\" 10", "\"a\" 9", "\"a\" 9"];
    assert_eq!(most, expected);
    assert!(!of("").0.contains("in shadow"));
}

#[test]
fn bans_and_hot_callers_are_counted() {
    let rules = "
limits:
  - Url: /
    rules:
      - {name: strict, actor: account, unit: minute, rpu: 1, algo: W, ban: {after: 3, within: 1m, for: 1m}}
      - {name: hot, actor: account, unit: minute, rpu: 1000, algo: W, hot: {over: 10, per: 1s}}
";
    let log: Vec<LoggedRequest> = (0..2000).map(|number| logged(BEGIN + number, "/", 1)).collect();
    let report = report(rules, &log, &[]);
    let counts =
        ["admitted", "refused", "banned", "bans"].map(|what| count(&report, "strict", what));
    assert_eq!(counts, [1, 3, 1996, 1]);
    assert!(count(&report, "hot", "hot") > 1000, "{report:#}");
}

#[test]
fn text_report_has_tables() {
    let log =
        [logged(BEGIN, "/a", 1), logged(BEGIN + 1, "/a", 1), logged(BEGIN + 60_001, "/held", 1)];
    let (_, rules, log) = files(&RULES.replace("rpu: 2", "rpu: 1"), &log);
    let Ran { out, code, .. } = diana(&["replay", &rules, &log, "--set", "header:x-account-id=14"]);
    assert_eq!(code, Some(0));
    for part in [
        "3 requests from 2026-11-24T06:00:00Z to 2026-11-24T06:01:00Z, on 1 gateway with 1 worker\n",
        "2 admitted, 0 of them after a delay; 1 refused (33.3 %)",
        "rule     checked  admitted  refused  refused by others\n",
        "account        3         2        1                  0\n",
        "account-1  account         1  2026-11-24T06:00:00Z",
        "never checked: later;",
    ] {
        assert!(out.contains(part), "{part} is missing in {out}");
    }
}

/// The output in the guide equals that of its command with a generated log.
pub fn shows(name: &str) {
    let guide = fs::read_to_string(root().join("docs/guides/command.md")).unwrap();
    let guide = guide.replace(" \\\n> ", " ");
    let is_it = |block: &&str| block.contains(&format!("| diana {name} "));
    let block = guide.split("$ python3 tools/access_log.py ").find(is_it).unwrap();
    let (command, rest) = block.split_once('\n').unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let (log, replay) = command.split_once(" | diana ").unwrap();
    let mut python = Command::new("python3");
    python.arg("tools/access_log.py").args(log.split(' ')).current_dir(root());
    let log = python.output().unwrap().stdout;
    let words: Vec<&str> = replay.split(' ').collect();
    let out = with_input(&words, &log).out;
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    assert_eq!(lines.join("\n") + "\n", shown);
}

#[test]
fn guide_shows_the_output_of_replay() {
    shows("replay");
}

#[test]
fn two_rule_files_are_compared_by_request() {
    let log: Vec<LoggedRequest> = (0..5).map(|number| logged(BEGIN + number, "/a", 1)).collect();
    let (folder, rules, log) = files(RULES, &log);
    fs::write(folder.join("other.yaml"), RULES.replace("rpu: 2", "rpu: 4")).unwrap();
    let other = folder.join("other.yaml");
    let arguments =
        ["replay", &rules, &log, "--set", "header:x-account-id=14", "--against", name(&other)];
    let text = diana(&arguments).out;
    assert!(text.contains("rules.yaml only") && text.contains("2  40.0 %"), "{text}");
    let report: Value =
        serde_json::from_str(&diana(&[&arguments[..], &["--format", "json"]].concat()).out)
            .unwrap();
    assert_eq!(
        report["against"]["refused_by"],
        serde_json::json!({"neither": 2, "both": 1, "only_rules": 2, "only_against": 0})
    );
    assert_eq!(report["against"]["all"]["refused"], 1);
}
