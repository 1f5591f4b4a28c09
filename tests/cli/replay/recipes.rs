//! Recipes of the guides: each with the log of the case that it is for.

use std::fs;

use serde_json::Value;

use super::{BEGIN, count, name, written};
use crate::command::{diana, folder, root};

/// Good logins, two a minute for eight hours.
const GOOD: u64 = 960;
const HOURS: u64 = 8;

/// The former rules of the guide, which count by address alone.
const BY_ADDRESS: &str = "
limits:
- Url: /login
  match: {methods: [POST]}
  rules:
  - {name: by-address, actor: address, unit: minute, rpu: 5, algo: SW, count: {status: [401]},
     ban: {after: 20, within: 1h, for: 15m, max: 24h, 'on': counted}}
  - {name: by-user, actor: user, unit: hour, rpu: 30, algo: SW, count: {status: [401]}}
actors: {user: [{header: x-login-name}]}
";

/// An attempt to log in, from the address of the office.
struct Attempt {
    /// Milliseconds since the beginning.
    at: u64,
    user: String,
    is_good: bool,
}

/// The attempts of an office, and of phones there that each try an old password in this interval.
fn office(phones: u64, seconds: u64) -> Vec<Attempt> {
    let good = |number: u64| Attempt {
        at: number * 30_000 + 7_000,
        user: format!("user{}", number % 48),
        is_good: true,
    };
    let mut attempts: Vec<Attempt> = (0..GOOD).map(good).collect();
    for phone in 0..phones {
        attempts.extend((0..HOURS * 3_600 / seconds).map(|number| Attempt {
            at: number * seconds * 1_000 + phone * 1_000 + 3_500,
            user: format!("phone{phone}"),
            is_good: false,
        }));
    }
    attempts.sort_by_key(|attempt| attempt.at);
    attempts
}

/// The number of good and of wrong attempts that these rules admit.
fn admitted(rules: &str, attempts: &[Attempt]) -> [u64; 2] {
    let line = |Attempt { at, user, is_good }: &Attempt| {
        let (time, status) = (written(BEGIN + at), if *is_good { 200 } else { 401 });
        format!(
            r#"{{"start_time":"{time}","method":"POST","path":"/login","response_code":{status},"duration":40,"x_forwarded_for":"198.51.100.1","x-login-name":"{user}"}}"#
        )
    };
    let log: Vec<String> = attempts.iter().map(line).collect();
    let folder = folder(&[("rules.yaml", rules), ("access.log", &log.join("\n"))]);
    let [rules, log, decisions] =
        ["rules.yaml", "access.log", "decisions"].map(|file| folder.join(file));
    let ran = diana(&["replay", name(&rules), name(&log), "--decisions", name(&decisions)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(decisions).unwrap();
    assert_eq!(text.lines().count(), attempts.len());
    let is_admitted = |line: &str| line.contains(r#""decision":"admitted""#);
    let mut counts = [0, 0];
    for (line, attempt) in text.lines().zip(attempts) {
        counts[usize::from(!attempt.is_good)] += u64::from(is_admitted(line));
    }
    counts
}

#[test]
fn old_phones_shut_out_no_office() {
    let rules = fs::read_to_string(root().join("envoy/examples/logins.yaml")).unwrap();
    for (phones, seconds) in [(1, 10), (1, 30), (1, 60), (5, 30), (9, 30)] {
        let [good, wrong] = admitted(&rules, &office(phones, seconds));
        assert_eq!((good, wrong), (GOOD, phones * 10 * HOURS), "{phones} each {seconds} s");
    }
}

#[test]
fn guide_shows_refusals_by_address_alone() {
    let guide = fs::read_to_string(root().join("docs/guides/logins.md")).unwrap();
    for (seconds, interval) in [(60, "minute"), (10, "10 s")] {
        let [good, _] = admitted(BY_ADDRESS, &office(1, seconds));
        let row = format!("every {interval} | {} of {GOOD} |", GOOD - good);
        assert!(guide.contains(&row), "{row} is missing in the guide");
    }
}

#[test]
fn guesses_from_one_address_are_bounded() {
    let rules = fs::read_to_string(root().join("envoy/examples/logins.yaml")).unwrap();
    let guess = |number: u64| Attempt {
        at: number * 1_000,
        user: format!("user{}", number % 1_000),
        is_good: false,
    };
    let guesses: Vec<Attempt> = (0..HOURS * 3_600).map(guess).collect();
    let [_, wrong] = admitted(&rules, &guesses);
    assert!(wrong <= 100 * HOURS, "{wrong} guesses");
}

/// A request with these members in the format of a log in JSON.
fn json_line(number: u64, path: &str, members: &str) -> String {
    let time = written(BEGIN + number * 50);
    format!(
        r#"{{"start_time":"{time}","method":"GET","path":"{path}","response_code":200,"duration":2,"x_forwarded_for":"198.51.100.1",{members}}}"#
    )
}

/// The report about a log under the rules of a file, with its text changed.
fn replayed(file: &str, change: impl Fn(String) -> String, log: &[String], set: &[&str]) -> Value {
    let rules = change(fs::read_to_string(root().join(file)).unwrap());
    let folder = folder(&[("rules.yaml", &rules), ("access.log", &log.join("\n"))]);
    let [rules, log] = ["rules.yaml", "access.log"].map(|file| folder.join(file));
    let ran = diana(&[&["replay", name(&rules), name(&log), "--format", "json"], set].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn replay_counts_requests_of_hot_keys() {
    let item = |number: u64| if number.is_multiple_of(2) { 7 } else { number };
    let line = |number| json_line(number, &format!("/items?id={}", item(number)), r#""x":1"#);
    let log: Vec<String> = (0..600).map(line).collect();
    let report = replayed("envoy/hot.yaml", |rules| rules, &log, &[]);
    // Of 300 requests of the item, those after the first fifty, as far as the window has them.
    assert!((150..=250).contains(&count(&report, "items", "hot")), "{report:#}");
    assert_eq!(count(&report, "items", "refused"), 0);
}

/// Tokens are in a field of the log, whether a header or metadata had them.
#[test]
fn replay_reads_tokens_from_a_field() {
    let members = r#""x-account-id":"a","tokens":1500"#;
    let line = |number| json_line(number, "/v1/chat/completions", members).replace("GET", "POST");
    let log: Vec<String> = (0..200).map(line).collect();
    let set = ["--set", "response:x-tokens-used=tokens"];
    let in_header = |rules: String| {
        let copy = rules.replace("metadata: [llm.usage, total_tokens]", "header: x-tokens-used");
        assert_ne!(copy, rules);
        copy
    };
    // 133 requests use 199,500 tokens, and 500 fit for the next one.
    for report in [
        replayed("envoy/examples/llm-tokens.yaml", |rules| rules, &log, &set),
        replayed("envoy/llm/sse.yaml", in_header, &log, &set),
    ] {
        assert_eq!(count(&report, "tokens", "admitted"), 134);
    }
}
