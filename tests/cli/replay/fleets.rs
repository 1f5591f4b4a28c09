//! Gateways of several workers: the scopes of counts.

use super::{Asked, BEGIN, asked, count, told};

/// Of 400 requests within a minute to 3 gateways of 2 workers, the number of admitted ones.
fn admitted(rule: &str) -> u64 {
    let rules = format!("limits: [{{Url: /, rules: [{{name: it, actor: account, {rule}}}]}}]");
    let log: Vec<Asked> = (0..400).map(|number| asked(BEGIN + number * 100, "/", 1)).collect();
    let told = told(&rules, &log, &["--gateways", "3", "--workers", "2"]);
    assert_eq!(count(&told, "it", "consulted"), 400);
    count(&told, "it", "admitted")
}

#[test]
fn a_worker_a_gateway_or_the_fleet_counts() {
    for algo in ["W", "SW"] {
        let admitted =
            |scope: &str| admitted(&format!("unit: hour, rpu: 7, algo: {algo}, scope: {scope}"));
        assert_eq!(["local", "gateway", "global"].map(admitted), [42, 21, 7], "{algo}");
    }
}

#[test]
fn buckets_of_a_gateway_lend_to_its_workers() {
    assert_eq!(admitted("unit: hour, rpu: 1, burst: 100, algo: TB, scope: global"), 100);
    assert_eq!(admitted("unit: hour, rpu: 1, burst: 100, algo: TB, scope: gateway"), 300);
}

#[test]
fn the_same_log_says_the_same_again() {
    let rules =
        "limits: [{Url: /, rules: [{name: it, actor: account, unit: second, rpu: 3, algo: TB}]}]";
    let log: Vec<Asked> =
        (0..2000).map(|number| asked(BEGIN + number * 7, "/", number % 5)).collect();
    let again = || {
        let told = told(rules, &log, &["--gateways", "2", "--workers", "3"]);
        (told["rules"]["all"].clone(), told["rules"]["refused_most"].clone())
    };
    assert_eq!(again(), again());
}
