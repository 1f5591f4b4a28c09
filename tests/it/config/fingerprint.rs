//! Fingerprints are constants: rules continue their counts under a new version of the module, and in
//! any order of the document.

use std::collections::{BTreeMap, BTreeSet};

use super::parse;
use diana_config::ConfigSource;
use diana_policy::tree::Tree;
use diana_policy::{Ban, Policy};
use fastrand::Rng;

use super::protobuf::{json, structure};

/// Documents in canonical order, each with the fingerprints of its rules in version 0.2.0.
const KNOWN: &str = include_str!("fingerprints.txt");

#[test]
fn canonical_documents_keep_their_fingerprints() {
    for line in KNOWN.lines() {
        let (known, document) = line.split_once(' ').unwrap();
        let found: Vec<String> = fingerprints(&super::policy(document));
        assert_eq!(found.join(","), known, "{document}");
    }
    assert!(KNOWN.lines().count() >= 80);
}

fn fingerprints(policy: &Policy) -> Vec<String> {
    let rules = policy.limits.iter().flat_map(|limit| &limit.rules);
    rules.map(|rule| format!("{:016x}", rule.fingerprint)).collect()
}

/// Rules of many kinds, some of which differ only in their count or cost. Each has another `rpu`.
const MANY: &str = r#"
limits:
- Url: [/b, /a]
  match:
  - {methods: [POST, GET], headers: {x-b: "2", x-a: {in: [c, b]}}}
  - {hosts: [b.example.com, a.example.com], cookies: {c: d}}
  unless: {query: {b: {present: true}, a: x}, addresses: [192.0.2.1, 10.0.0.0/8]}
  rules: &rules
  - {actor: account, unit: hour, algo: W, rpu: 1}
  - {actor: account, unit: hour, algo: W, rpu: 2, cost: {header: x-cost, max: 2}}
  - {actor: account, unit: hour, algo: W, rpu: 3, cost: {metadata: [ns, key], max: 2}}
  - {actor: account, unit: hour, algo: W, rpu: 4, cost: {metadata: [key, ns], max: 2}}
  - {actor: account, unit: hour, algo: W, rpu: 5, cost: {response: {header: x-used}, max: 2}}
  - {actor: account, unit: hour, algo: W, rpu: 6, count: {status: [403, 401]}}
  - {actor: account, unit: hour, algo: W, rpu: 7, count: {failed: true, details: [b, a]}}
  - {actor: account, unit: hour, algo: W, rpu: 8, except: {headers: {x-b: "1", x-a: "2"}}}
  - {actor: account, unit: hour, algo: W, rpu: 9, except: {addresses: [192.0.2.2, 10.0.0.0/8], paths: [/a/b, /a/a]}}
  - {actor: account, unit: hour, algo: TB, rpu: 10, ban: {after: 3, within: 1m, for: 5m}}
  - {actor: [device, account], unit: hour, algo: SW, slices: 6, rpu: 11}
  - {actor: account, in_flight: 12}
  - {actor: account, unit: hour, algo: W, rpu: 13, name: named}
- Url: [/a, /b]
  match:
  - {methods: [POST, GET], headers: {x-b: "2", x-a: {in: [c, b]}}}
  - {hosts: [b.example.com, a.example.com], cookies: {c: d}}
  unless: {query: {b: {present: true}, a: x}, addresses: [192.0.2.1, 10.0.0.0/8]}
  except: {paths: [/b/health, /a/health]}
  rules:
  - {actor: account, unit: hour, algo: W, rpu: 14}
  - {actor: account, unit: hour, algo: W, rpu: 15, count: {status: [403, 401]}}
- Url: /c
  rules:
  - {actor: account, unit: hour, algo: W, rpu: 16}
  - {actor: account, unit: day, algo: W, rpu: 17}
"#;

fn tree(text: &str) -> Tree {
    ConfigSource::read(text.as_bytes()).unwrap().documents()[0].clone()
}

/// The fingerprint of each rule, by its `rpu`.
fn by_rpu(bytes: &[u8]) -> BTreeMap<u64, u64> {
    let policy = parse(bytes).unwrap_or_else(|problems| panic!("{problems}"));
    let rules = policy.limits.iter().flat_map(|limit| &limit.rules);
    rules.map(|rule| (rule.quota.rpu, rule.fingerprint)).collect()
}

/// Shuffles keys, and the items of all lists without a meaningful order.
fn shuffle(tree: &mut Tree, rng: &mut Rng) {
    match tree {
        Tree::List(items) => {
            rng.shuffle(items);
            items.iter_mut().for_each(|item| shuffle(item, rng));
        }
        Tree::Map(pairs) => {
            rng.shuffle(pairs);
            let is_ordered = |key: &str| key == "actor" || key == "metadata";
            let values = pairs.iter_mut().filter(|(key, _)| !is_ordered(key));
            values.for_each(|(_, value)| shuffle(value, rng));
        }
        _ => {}
    }
}

/// The order of a document has no meaning in any of its forms. A `Struct` arrives in any order.
#[test]
fn rule_keeps_its_fingerprint_in_any_order() {
    let expected = by_rpu(MANY.as_bytes());
    assert_eq!(expected.len(), 17);
    assert_eq!(expected.values().collect::<BTreeSet<_>>().len(), 17, "each is another rule");
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..200 {
        let mut tree = tree(MANY);
        shuffle(&mut tree, &mut rng);
        let Tree::Map(pairs) = &tree else { panic!("no mapping") };
        assert_eq!(by_rpu(json(&tree).as_bytes()), expected, "{}", json(&tree));
        assert_eq!(by_rpu(&structure(pairs)), expected, "{}", json(&tree));
    }
}

fn of_rules(rules: &[&str]) -> BTreeMap<u64, u64> {
    by_rpu(format!("limits: [{{Url: /a, rules: [{}]}}]", rules.join(", ")).as_bytes())
}

/// A rule that is put before, between or behind the others, and taken away again.
#[test]
fn further_rules_change_no_fingerprint() {
    let plain = "{actor: account, unit: hour, algo: W, rpu: 1}";
    let others = [
        "{actor: account, unit: hour, algo: W, rpu: 2, cost: {header: x-cost, max: 2}}",
        "{actor: account, unit: hour, algo: W, rpu: 3, cost: {header: x-dear, max: 2}}",
        "{actor: account, unit: hour, algo: W, rpu: 4, count: {status: [401]}}",
        "{actor: account, unit: hour, algo: W, rpu: 5, except: {paths: [/a/b]}}",
        "{actor: account, unit: day, algo: W, rpu: 6}",
    ];
    let alone = of_rules(&[plain])[&1];
    for (index, other) in others.iter().enumerate() {
        for pair in [[plain, *other], [*other, plain]] {
            let before = of_rules(&pair);
            assert_eq!(before[&1], alone, "{pair:?}");
            for third in others.iter().enumerate().filter(|(at, _)| *at != index) {
                for at in 0..=2 {
                    let mut rules = pair.to_vec();
                    rules.insert(at, third.1);
                    let after = of_rules(&rules);
                    assert!(before.iter().all(|(rpu, it)| after[rpu] == *it), "{rules:?}");
                }
            }
        }
    }
}

/// Rules that count the same keep their order among themselves, and get advice.
#[test]
fn equal_rules_are_told_apart_by_their_order() {
    let equal = |rpu| format!("{{actor: account, unit: hour, algo: W, rpu: {rpu}}}");
    let other = "{actor: account, unit: day, algo: W, rpu: 9}";
    let [one, two, three] = [1, 2, 3].map(equal);
    let before = of_rules(&[&one, &two]);
    assert_ne!(before[&1], before[&2]);
    let after = of_rules(&[other, &one, other, &two, &three]);
    assert!(before.iter().all(|(rpu, fingerprint)| after[rpu] == *fingerprint));
    let swapped = of_rules(&[&two, &one]);
    assert_eq!((swapped[&1], swapped[&2]), (before[&2], before[&1]));
    let advised = |rules: &[&str]| {
        let text = format!("limits: [{{Url: /a, rules: [{}]}}]", rules.join(", "));
        let warnings = super::policy(&text).warnings;
        warnings.into_iter().filter(|line| line.contains("give each a `name`")).collect::<Vec<_>>()
    };
    let lines = advised(&[&one, other, &two]);
    assert!(lines.len() == 1 && lines[0].ends_with(": a-account-hour-w, a-account-hour-w-2"));
    let counted = "{actor: account, unit: hour, algo: W, rpu: 4, count: {failed: true}}";
    assert_eq!(advised(&[&one, other, counted]), [""; 0]);
    let named = [1, 2].map(|it| equal(it).replace('{', &format!("{{name: n{it}, ")));
    assert_eq!(advised(&[&named[0], &named[1], &one]), [""; 0]);
}

/// These change without a new start.
#[test]
fn numbers_and_responses_do_not_change_the_fingerprint() {
    let base = "actor: account, unit: hour, algo: TB, scope: global";
    let of = |more: &str| *of_rules(&[&format!("{{{base}, {more}}}")]).values().next().unwrap();
    for more in [
        "rpu: 2",
        "rpu: 1, burst: 7",
        "rpu: 3600, max_queue: 3, max_delay: 2s",
        "rpu: 1, cost: 1",
        "rpu: 1, shadow: true",
        "rpu: 1, enforce: 50",
        "rpu: 1, expose: false",
        "rpu: 1, near: 80",
        "rpu: 1, absent: share",
        "rpu: 1, on_failure: deny",
        "rpu: 1, ask: after",
        "rpu: 1, ban: {after: 3, within: 1m, for: 5m}",
        "rpu: 1, plans: {of: {ann: {rpu: 9}}}",
        "rpu: 1, response: {status: 429}",
        "rpu: 1, hot: {over: 1000, per: 10s}",
    ] {
        assert_eq!(of(more), of("rpu: 1"), "{more}");
    }
    let costs = |more: &str| of(&format!("rpu: 200, cost: {{header: x-cost, {more}}}"));
    assert_eq!(costs("max: 10"), costs("max: 99, default: 3"));
}

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

/// Other starts of windows apply when the current ones end.
#[test]
fn starts_do_not_change_the_fingerprint() {
    let rule = "name: r, actor: account, unit: month, rpu: 5, algo: W";
    let plain = fingerprint("Z", rule);
    for starts in [
        "day_starts: \"05:00\"",
        "month_starts: 15",
        "month_starts: {jwt_claim: day, payload: p, default: 15}",
    ] {
        assert_eq!(fingerprint("Z", &format!("{rule}, {starts}")), plain, "{starts}");
        assert_ne!(fingerprint("CST-8", &format!("{rule}, {starts}")), plain, "{starts}");
    }
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
    let ban = Ban { after: 3, within: 5, period: 7, max: 11, halve_after: 13, is_shadow: false };
    assert_eq!(ban.fingerprint(17), 4_426_261_223_196_934_013);
    // No ban that began in shadow is enforced.
    assert_ne!(Ban { is_shadow: true, ..ban }.fingerprint(17), ban.fingerprint(17));
}

#[test]
fn keys_within_others_keep_their_order() {
    let of = |keys: &str| {
        let test = format!("metadata: {{n: [{{key: {keys}, test: c}}]}}");
        let rules = "rules: [{actor: account, unit: day, rpu: 1}]";
        fingerprints(&super::policy(&format!("{{Url: /, match: {{{test}}}, {rules}}}")))
    };
    assert_ne!(of("[a, b]"), of("[b, a]"));
}
