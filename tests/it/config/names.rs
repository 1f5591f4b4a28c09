//! Default names of rules.

use super::policy;

/// The names of all rules of a document with these blocks.
fn names(blocks: &str) -> Vec<String> {
    let policy = policy(blocks);
    policy.limits.into_iter().flat_map(|limit| limit.rules).map(|rule| rule.name).collect()
}

const ALL: &str = "actor: all, unit: second, rpu: 5";

#[test]
fn are_made_of_url_actor_unit_and_algorithm() {
    let blocks = "
- {Url: /, rules: [{actor: all, unit: second, rpu: 5}, {actor: [account, device], unit: day, rpu: 5, algo: SW}]}
- {Url: /share/qq, rules: [{actor: actor, unit: minute, rpu: 5, algo: W}]}
- {Url: /V1.0/Ünï_x/, rules: [{actor: device, unit: second, rpu: 5, algo: LB}]}
- {Url: /中文, rules: [{actor: device, unit: hour, rpu: 3600, algo: LB}]}";
    assert_eq!(
        names(blocks),
        [
            "root-all-second-tb",
            "root-account-device-day-sw",
            "share-qq-account-minute-w",
            "v1-0-n-_x-device-second-lb",
            "path-device-hour-lb",
        ]
    );
}

#[test]
fn are_numbered_and_never_collide_with_given_ones() {
    let blocks = format!(
        "{{Url: /, rules: [{{{ALL}}}, {{{ALL}}}, {{{ALL}}}, {{{ALL}, name: root-all-second-tb-2}},
           {{{ALL}, name: root-all-second-tb}}, {{{ALL}}}]}}"
    );
    assert_eq!(
        names(&blocks),
        [
            "root-all-second-tb-3",
            "root-all-second-tb-4",
            "root-all-second-tb-5",
            "root-all-second-tb-2",
            "root-all-second-tb",
            "root-all-second-tb-6",
        ]
    );
}

#[test]
fn are_short_and_unique_however_long_the_parts() {
    let url = "/very".repeat(40);
    let actor = "a".repeat(64);
    let rule = format!("{{actor: [{actor}, account], unit: second, rpu: 5}}");
    let rules = vec![rule; 300].join(", ");
    let text = format!(
        "{{limits: [{{Url: {url}, rules: [{rules}]}}, {{Url: {url}/x, rules: [{{{ALL}}}]}}],
          actors: {{{actor}: [{{query: q}}]}}}}"
    );
    let names = names(&text);
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!((names.len(), unique.len()), (301, 301));
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    assert!(names[0].starts_with("very-very") && names[0].contains("-aaaa"), "{}", names[0]);
    assert!(names[0].ends_with("-second-tb") && names[300].ends_with("-all-second-tb"));
}
