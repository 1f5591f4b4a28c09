//! Rules go on with what was used under a new version of the module, too: it is kept under these numbers.

use std::collections::BTreeSet;

use diana_core::policy::Ban;

#[test]
fn a_new_version_finds_what_the_one_before_counted() {
    for (fingerprint, rule) in [
        (0xb9ce19e0d9ee33dd, "actor: account, unit: second, rpu: 5"),
        (0xacd3a0481da0a82c, "actor: account, unit: second, rpu: 5, warm_up: 1s"),
        (0xef8808385f76cd7b, "actor: device, unit: day, rpu: 5, algo: W, scope: global"),
        (
            0x006e08ee8d3a19c6,
            "actor: device, unit: day, rpu: 5, algo: W, scope: global, quota: {accounts: 1000}",
        ),
        (
            0x4613004224fd61a3,
            "actor: device, unit: day, rpu: 5, algo: W, scope: local, quota: {accounts: 1000}",
        ),
        (0xd34443e1bcc3cbeb, "actor: [account, device], unit: hour, rpu: 5, algo: SW, name: n"),
        (0xc67eea9de781e38d, "actor: all, unit: hour, rpu: 5, algo: SW, slices: 7, scope: local"),
        (0x4263b00a633a57f3, "actor: all, unit: minute, rpu: 500, algo: LB, scope: global"),
    ] {
        let text = format!(
            "time_zone: \"+05:30\"
limits: [{{Url: /a, match: {{methods: [GET]}}, rules: [{{{rule}}}]}}]"
        );
        let policy =
            diana_config::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(policy.limits[0].rules[0].fingerprint, fingerprint, "{rule}");
    }
}

/// What else an entry is for makes its rules others.
#[test]
fn other_requests_are_counted_anew() {
    let of = |entry: &str| {
        let text = format!("{{{entry}, rules: [{{actor: all, unit: day, rpu: 1}}]}}");
        let policy = diana_config::parse(text.as_bytes()).unwrap();
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

/// Bans, too.
#[test]
fn a_new_version_finds_whom_the_one_before_banned() {
    let ban = Ban { after: 3, within: 5, period: 7, max: 11, halve_after: 13 };
    assert_eq!(ban.fingerprint(17), 4_426_261_223_196_934_013);
}
