//! Fingerprints are constants: rules continue their counts under a new version of the module.

use std::collections::BTreeSet;

use diana_policy::Ban;

#[test]
fn rule_fingerprint_is_constant_across_versions() {
    let known = [
        (0x421e333e3c9df5aa, "actor: account, unit: second, rpu: 5"),
        (0xfc939be79db4acf1, "actor: account, unit: second, rpu: 5, warm_up: 1s"),
        (0x1449455ba672a7b5, "actor: device, unit: day, rpu: 5, algo: W, scope: global"),
        (
            0x92023cdeb2f414b3,
            "actor: device, unit: day, rpu: 5, algo: W, scope: global, quota: {accounts: 1000}",
        ),
        (
            0x2b9b5dfe70727d83,
            "actor: device, unit: day, rpu: 5, algo: W, scope: local, quota: {accounts: 1000}",
        ),
        (0xed820410cdb01696, "actor: [account, device], unit: hour, rpu: 5, algo: SW, name: n"),
        (0xcc2b26bf24f078a2, "actor: all, unit: hour, rpu: 5, algo: SW, slices: 7, scope: local"),
        (0x576be52a27b41d74, "actor: all, unit: minute, rpu: 500, algo: LB, scope: global"),
    ];
    let found = known.map(|(_, rule)| (fingerprint("\"+05:30\"", rule), rule));
    assert_eq!(found, known);
}

/// The text of a time zone and the unit identify a rule, even for units of equal length.
#[test]
fn unit_and_time_zone_change_the_fingerprint() {
    let rule = |unit| format!("actor: device, unit: {unit}, rpu: 5, algo: W");
    let zones = [
        "Z",
        "JST-9",
        "\"+09:00\"",
        "<+09>-9",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "CET-1CEST,M3.5.0,M10.5.0",
    ];
    let units = ["day", "week", "month", "31d", "2d", "7s"];
    let mut seen: Vec<u64> =
        zones.iter().flat_map(|zone| units.map(|unit| fingerprint(zone, &rule(unit)))).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), zones.len() * units.len());
    for (zone, same) in [("Z", "\"-00:00\""), ("UTC", "Z")] {
        assert_eq!(fingerprint(zone, &rule("day")), fingerprint(same, &rule("24h")));
    }
    let places = "actor: device, in_flight: 5";
    assert_eq!(fingerprint(zones[4], places), fingerprint("Z", places), "no unit, no window");
}

fn fingerprint(zone: &str, rule: &str) -> u64 {
    let text = format!(
        "time_zone: {zone}\nlimits: [{{Url: /a, match: {{methods: [GET]}}, rules: [{{{rule}}}]}}]"
    );
    let policy = super::policy(&text);
    policy.limits[0].rules[0].fingerprint
}

/// Other conditions of the entry make its rules different.
#[test]
fn conditions_of_the_entry_change_the_fingerprint() {
    let of = |entry: &str| {
        let text = format!("{{{entry}, rules: [{{actor: all, unit: day, rpu: 1}}]}}");
        let policy = super::policy(&text);
        policy.limits[0].rules[0].fingerprint
    };
    let entries = [
        "Url: /a",
        "Url: /b",
        "Url: [/a, /b]",
        "Url: /a, match: {methods: [GET]}",
        "Url: /a, match: [{methods: [GET]}]",
        "Url: /a, unless: {methods: [GET]}",
        "Url: /a, match: {methods: [GET]}, unless: {methods: [GET]}",
    ];
    let fingerprints: BTreeSet<u64> = entries.into_iter().map(of).collect();
    assert_eq!(fingerprints.len(), entries.len());
    assert_eq!(of("Url: /a"), of("Url: [/a]"));
}

/// The same for bans.
#[test]
fn ban_fingerprint_is_constant_across_versions() {
    let ban = Ban { after: 3, within: 5, period: 7, max: 11, halve_after: 13 };
    assert_eq!(ban.fingerprint(17), 4_426_261_223_196_934_013);
}
