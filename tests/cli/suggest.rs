//! `diana suggest`.

use serde_json::Value;

use crate::command::{Ran, diana, folder};
use crate::replay::{BEGIN, LoggedRequest, count, envoy, logged, name};

/// A log of two minutes. In each minute, caller n makes n requests at once.
fn log(callers: u64) -> Vec<LoggedRequest> {
    let of = |minute: u64, caller: u64| {
        (0..caller).map(move |number| logged(BEGIN + minute * 60_000 + number, "/a", caller))
    };
    (0..2).flat_map(|minute| (1..=callers).flat_map(move |caller| of(minute, caller))).collect()
}

/// Runs the command on a log. Column 14 has the account.
fn suggest(log: &[LoggedRequest], more: &[&str]) -> Ran {
    let lines: Vec<String> = log.iter().map(envoy).collect();
    let folder = folder(&[("access.log", &lines.join("\n"))]);
    let log = folder.join("access.log");
    let set = ["--set", "header:x-account-id=14"];
    diana(&[&["suggest", name(&log)], &set[..], more].concat())
}

fn report(log: &[LoggedRequest], more: &[&str]) -> Value {
    let ran = suggest(log, &[more, &["--format", "json"]].concat());
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn suggested_limit_is_the_smallest_allowed() {
    for (share, refused, limit) in
        [("0", 0, 100), ("1%", 1, 99), ("0.1", 10, 90), ("12.5 %", 12, 88)]
    {
        let report = report(&log(100), &["--actor", "account", "--refuse", share]);
        assert_eq!(
            (&report["refused"], &report["limit"]),
            (&refused.into(), &limit.into()),
            "{share}"
        );
        assert_eq!((&report["callers"], &report["absent"]), (&100.into(), &0.into()));
    }
}

/// A replay of the same log under the suggested rules refuses the reported number of callers, for
/// any log.
#[test]
fn suggested_rules_refuse_the_reported_callers() {
    let mut rng = fastrand::Rng::with_seed(7);
    for unit in ["second", "minute", "hour", "day"] {
        let mut at = BEGIN;
        let log: Vec<LoggedRequest> = (0..5000)
            .map(|_| {
                at += if rng.u8(0..100) == 0 { rng.u64(0..100_000) } else { rng.u64(0..60) };
                let caller = 1000f64.powf(rng.f64()) as u64;
                logged(at, ["/a/b", "/b"][rng.usize(0..2)], caller)
            })
            .collect();
        let more = ["--actor", "account", "--url", "/a", "--refuse", "3%", "--unit", unit];
        let report = report(&log, &more);
        let refused = report["refused"].as_u64().unwrap();
        let callers = report["callers"].as_u64().unwrap();
        assert!(refused <= callers * 3 / 100 && callers > 100, "{report:#}");
        let rules = report["rules"].as_str().unwrap();
        let replayed = crate::replay::report(rules, &log, &[]);
        assert_eq!(replayed["rules"]["refused_callers"].as_u64(), Some(refused), "{replayed:#}");
        // A limit lower by one refuses more callers than allowed.
        let limit = report["limit"].as_u64().unwrap();
        let less = rules.replace(&format!("rpu: {limit}"), &format!("rpu: {}", limit - 1));
        let replayed = crate::replay::report(&less, &log, &[]);
        assert!(replayed["rules"]["refused_callers"].as_u64() > Some(callers * 3 / 100));
    }
}

#[test]
fn output_is_a_valid_rules_file() {
    let ran =
        suggest(&log(20), &["--actor", "header:x-account-id", "--url", "/a", "--refuse", "10%"]);
    // Columns are as wide as their content.
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let out: Vec<String> = ran.out.lines().map(|line| squeezed(line) + "\n").collect();
    let out = out.concat();
    for part in [
        "# 420 requests to /a from 20 callers, identified by `header:x-account-id`\n",
        "# minute 10 18 20 20 20 18\n",
        "# 18 per minute would have refused requests of 2 callers (10.0 %).",
        "actors: {caller: [{header: \"x-account-id\"}]}\n",
        "- {actor: \"caller\", unit: minute, rpu: 18, algo: window}\n",
    ] {
        assert!(out.contains(part), "{part} is missing in {out}");
    }
    let folder = folder(&[("rules.yaml", &ran.out)]);
    let checked = diana(&["check", name(&folder.join("rules.yaml"))]);
    assert!(
        checked.code == Some(0) && checked.out.contains("1 rule without problems"),
        "{checked:?}"
    );
}

#[test]
fn steady_requests_are_no_burst() {
    let even: Vec<LoggedRequest> =
        (0..100).map(|number| logged(BEGIN + number * 500, "/", 1)).collect();
    let report = report(&even, &["--actor", "account"]);
    let busiest: Vec<u64> = report["busiest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| span["max"].as_u64().unwrap())
        .collect();
    assert_eq!(busiest, [1, 2, 100, 100, 100]);
}

#[test]
fn log_without_callers_is_refused() {
    for (more, why) in [
        (&["--url", "/b"][..], "the log has no request to /b"),
        (
            &["--actor", "header:x-tenant"],
            "no request of the log has a value for `header:x-tenant`; name its field with `--set header:NAME=FIELD`",
        ),
        (&["--actor", "nobody"], "limits[0].rules[0].actor"),
        (&["--refuse", "101%"], "allowed: a share such as 0.1%"),
        (&["--url", "b\"]}"], "limits[0].Url"),
    ] {
        let ran = suggest(&log(3), more);
        assert!(ran.code == Some(2) && ran.error.contains(why) && ran.out.is_empty(), "{ran:?}");
    }
}

/// Windows are those of the rules, so a replay has the same counts.
#[test]
fn suggestion_uses_windows_of_the_algorithm() {
    // Three before a full minute, and three after it.
    let log: Vec<LoggedRequest> =
        (0..6).map(|number| logged(BEGIN + 57_000 + number * 1000, "/", 1)).collect();
    let rules =
        "limits: [{Url: /, rules: [{name: it, actor: account, unit: minute, rpu: 3, algo: W}]}]";
    assert_eq!(report(&log, &["--actor", "account"])["limit"], 3);
    assert_eq!(count(&crate::replay::report(rules, &log, &[]), "it", "refused"), 0);
}

#[test]
fn guide_shows_the_output_of_suggest() {
    crate::replay::shows("suggest");
}
