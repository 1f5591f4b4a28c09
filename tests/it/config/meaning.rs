//! The meaning of keys, and their defaults.

mod answers;
mod matching;
mod time;

use super::{policy, rule, with_rule};
use diana_algorithm::Form;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{Absent, Accepted, Ban, Scope, Zone};

#[test]
fn defaults() {
    let policy = policy(&with_rule("rpu: 10"));
    let rule = &policy.limits[0].rules[0];
    assert_eq!((rule.algo, rule.scope, rule.absent), ("TB", Scope::Gateway, Absent::Skip));
    assert_eq!((rule.enforce, rule.shadow, rule.expose), (100, false, true));
    assert_eq!((rule.quota.cost, rule.quota.burst, rule.quota.zone), (1, None, Zone::UTC));
    assert_eq!((rule.response.status, rule.response.headers.len()), (503, 0));
    assert!(
        rule.except.is_empty() && policy.except.is_empty() && policy.limits[0].except.is_empty()
    );
    let names: Vec<&str> = policy.actors.iter().map(|actor| actor.name.as_str()).collect();
    let sources: Vec<usize> = policy.actors.iter().map(|actor| actor.sources.len()).collect();
    assert_eq!((names, sources), (vec!["account", "device", "address"], vec![1, 2, 1]));
    assert_eq!((policy.keys, policy.shadow, policy.log_refused), (100_000, false, false));
    assert_eq!((policy.namespace, policy.accepted), (None, Accepted::default()));
}

#[test]
fn every_key_of_a_rule() {
    let rule = rule(&with_rule(
        "actor: [account, device], unit: minute, rpu: 7, algo: token bucket, scope: local, name: n-1_x,
         cost: 2, burst: 9, absent: deny, enforce: 5, shadow: true, expose: false,
         except: {paths: [/a]}, response: {status: 429}",
    ));
    assert_eq!(
        (rule.actor.as_slice(), rule.quota.unit, rule.quota.rpu),
        (&[0, 1][..], Unit::Minute, 7)
    );
    assert_eq!((rule.algo, rule.scope, rule.name.as_str()), ("TB", Scope::Local, "n-1_x"));
    assert_eq!((rule.quota.cost, rule.quota.burst, rule.absent), (2, Some(9), Absent::Deny));
    assert_eq!((rule.enforce, rule.shadow, rule.expose), (5, true, false));
    assert_eq!((rule.except.paths.len(), rule.response.status), (1, 429));
}

#[test]
fn costs_in_requests() {
    let told = |more: &str| {
        let fields = format!("rpu: 10, cost: {{metadata: [a, b], max: 5{more}}}");
        let rule = rule(&with_rule(&fields));
        let told = rule.told.unwrap();
        (rule.quota.cost, told.source.kind, told.is_text, told.default)
    };
    assert_eq!(told(""), (5, "metadata", false, 1));
    assert_eq!(told(", type: number, default: 5"), (5, "metadata", false, 5));
    assert_eq!(told(", type: text"), (5, "metadata", true, 1));
}

#[test]
fn daily_quotas_are_made_for_the_requests_that_permits_suffice_for() {
    let shape = |fields: &str| {
        let fields =
            format!("unit: day, algo: W, scope: local, quota: {{accounts: 1000}}, {fields}");
        rule(&with_rule(&fields)).daily.unwrap()
    };
    let counts = shape("rpu: 600, cost: 200");
    assert_eq!(counts.layout(), shape("rpu: 3").layout());
    assert_ne!(counts.layout(), shape("rpu: 600").layout());
}

#[test]
fn bans() {
    let ban = |more: &str| {
        let fields = format!("rpu: 10, ban: {{after: 5, within: 100ms, for: 1m{more}}}");
        rule(&with_rule(&fields)).ban.unwrap()
    };
    let minute = 60 * SECOND;
    let (after, within, period) = (5, SECOND / 10, minute);
    let plain = Ban { after, within, period, max: minute, halve_after: minute };
    assert_eq!(ban(""), plain);
    let (max, halve_after) = (60 * minute, 60 * minute);
    assert_eq!(ban(", max: 1h"), Ban { max, halve_after, ..plain });
    assert_eq!(ban(", max: 1h, halve_after: 60s"), Ban { max, halve_after: minute, ..plain });
    assert_eq!(rule(&with_rule("rpu: 10")).ban, None);
    // Every parameter changes the fingerprint, and so does the rule.
    let fingerprints =
        ["", ", max: 2m", ", max: 2m, halve_after: 1m"].map(|more| ban(more).fingerprint(1));
    assert!(fingerprints[0] != fingerprints[1] && fingerprints[1] != fingerprints[2]);
    assert_ne!(fingerprints[0], plain.fingerprint(2));
}

#[test]
fn hot_keys() {
    let hot =
        |text: &str| rule(&with_rule(&format!("hot: {{over: 9, per: 1h{text}}}"))).hot.unwrap();
    let found = hot("");
    assert_eq!((found.over, found.per), (9, 3_600_000_000));
    assert_eq!((found.header, found.top, found.reveal), (None, 10, false));
    let found = hot(", header: X-Hot_Key, top: 100, reveal: true");
    assert_eq!((found.header.as_deref(), found.top, found.reveal), (Some("x-hot_key"), 100, true));
}

#[test]
fn every_key_of_an_algorithm_reaches_it() {
    for entry in diana_algorithm::REGISTRY {
        for key in entry.keys {
            let base = format!("algo: {}, unit: second, rpu: 50", entry.long);
            let (text, value) = match key.form {
                Form::Number => ("9", 9),
                Form::Duration => ("900ms", 900_000),
            };
            // In a token bucket it requires `max_delay`.
            let base =
                if key.name == "max_queue" { format!("{base}, max_delay: 1s") } else { base };
            let mut with = rule(&with_rule(&format!("{base}, {}: {text}", key.name)));
            assert_eq!(*(key.field)(&mut with.quota), Some(value), "{}", key.name);
            assert_ne!(rule(&with_rule(&base)).quota, with.quota, "{}", key.name);
        }
    }
}

#[test]
fn settings() {
    let policy = policy(
        "{limits: [], shadow: true, namespace: Shop_1-a, keys: 10000000, log: refused,
        accepted: {headers: true, filter_state: true}}",
    );
    assert_eq!(
        (policy.shadow, policy.namespace.as_deref(), policy.keys),
        (true, Some("Shop_1-a"), 10_000_000)
    );
    assert_eq!(
        (policy.log_refused, policy.accepted),
        (true, Accepted { headers: true, filter_state: true })
    );
}

#[test]
fn tables_fit_into_a_vm() {
    let rules =
        "{actor: account, unit: day, rpu: 9, algo: SW, slices: 60, scope: local},".repeat(40);
    let with = |keys: &str| format!("{{limits: [{{Url: /, rules: [{rules}]}}]{keys}}}");
    // The default is reduced. A configured number is a problem, and the report names a number that
    // fits.
    assert!(policy(&with("")).keys < 100_000);
    let problems = diana_config::parse(with(", keys: 100000").as_bytes()).unwrap_err().to_string();
    assert!(problems.contains("keys: with `keys: 100000`"), "{problems}");
    let fits = problems.split("use `keys: ").nth(1).and_then(|rest| rest.split('`').next());
    let fits: usize = fits.unwrap().parse().unwrap();
    let policy = policy(&with(&format!(", keys: {fits}")));
    let megabytes = |keys| diana_limiter::sizing::memory(&policy.limits, keys).worker >> 20;
    assert!(policy.limits[0].rules.len() == 40 && megabytes(fits) < 512);
    assert!(megabytes(fits * 10 / 9 + 2) >= 512, "{fits} gives away more than a tenth");
}
