//! Settlement with the outcomes in a log.

use super::{BEGIN, LoggedRequest, count, decisions, logged, report};

/// Wrong passwords count, and right ones do not.
#[test]
fn outcomes_are_read_from_the_log() {
    let rules = "limits: [{Url: /, rules: [{name: login, actor: account, unit: hour, rpu: 2, algo: SW, \
                 count: {status: [401]}}]}]";
    let with = |status: u16| -> Vec<LoggedRequest> {
        let one = |number: u64| LoggedRequest { status, ..logged(BEGIN + number * 100, "/", 1) };
        (0..10).map(one).collect()
    };
    assert_eq!(count(&report(rules, &with(200), &[]), "login", "refused"), 0);
    assert_eq!(count(&report(rules, &with(401), &[]), "login", "refused"), 8);
}

#[test]
fn true_cost_is_read_from_the_log() {
    let rules = "limits: [{Url: /, rules: [{name: tokens, actor: account, unit: hour, rpu: 100, algo: W, \
                 cost: {response: {header: x-tokens}, reserve: 10, max: 60}}]}]";
    // The size of the body, in column 6, is always 12.
    let log: Vec<LoggedRequest> =
        (0..10).map(|number| logged(BEGIN + number * 100, "/", 1)).collect();
    let report = report(rules, &log, &["--set", "response:x-tokens=6"]);
    // Eight requests use 96, and too few remain for the reservation of ten.
    assert_eq!(count(&report, "tokens", "admitted"), 8);
}

#[test]
fn decision_of_a_held_request_has_its_delay() {
    let rules = "limits: [{Url: /, rules: [{actor: account, unit: second, rpu: 2, algo: LB, max_delay: 1s}]}]";
    let log: Vec<LoggedRequest> =
        (0..4).map(|number| logged(BEGIN + number * 100, "/", 1)).collect();
    let expected = [("admitted", 0), ("held", 400_000), ("held", 800_000), ("refused", 0)];
    assert_eq!(
        decisions(rules, &log),
        expected.map(|(decision, wait)| (decision.to_owned(), wait))
    );
}
