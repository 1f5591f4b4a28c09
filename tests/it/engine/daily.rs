//! Daily quotas of many accounts, beside other rules.

use diana_core::permit::End;
use diana_core::verdict::Verdict;
use kit::told::Told;

use super::{Gate, field, from};

const DAY: u64 = 86_400_000_000;

#[test]
fn a_quota_is_charged_only_for_what_is_let_through() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules:
              - {name: posts, actor: account, unit: day, rpu: 5, algo: W, scope: local,
                 quota: {accounts: 1000}}
              - {name: all, actor: all, unit: minute, rpu: 2, algo: W, scope: local}
              - {name: line, actor: account, unit: second, rpu: 1, algo: LB, max_delay: 3s, scope: local}",
    );
    assert!(gate.admits(&from("ann")));
    let Verdict::Hold(held) = gate.decide(&from("ann")) else { panic!("it is held") };
    // Which counts.
    held.permit.finish(End::Served);
    for _ in 0..10 {
        let refusal = gate.refusal(&from("ann"));
        assert!(refusal.by.state().contains("rule=all"), "{}", refusal.by.state());
        let headers = refusal.headers();
        let told = field(&headers, "ratelimit").unwrap();
        assert!(told.contains(r#""posts";r=3"#), "{told}");
    }
    for _ in 0..3 {
        gate.wait(60_000_000);
        assert!(gate.admits(&from("ann")));
    }
    gate.wait(60_000_000);
    let refusal = gate.refusal(&from("ann"));
    assert!(refusal.by.state().contains("rule=posts"), "{}", refusal.by.state());
    // 2023-11-14 22:18 by the clock of the gate.
    assert_eq!(field(&refusal.headers(), "retry-after"), Some("6120"));
    assert_eq!(
        field(&refusal.headers(), "ratelimit-policy").unwrap().split(',').next(),
        Some(r#""posts";q=5;w=86400"#)
    );
    gate.wait(6_120_000_000 - 1);
    assert!(!gate.admits(&from("ann")));
    gate.wait(1);
    assert!(gate.admits(&from("ann")));
}

#[test]
fn a_quota_tells_how_many_accounts_it_counts_and_when_they_are_too_many() {
    // By itself, and as one of several would be.
    for more in ["", "accepted: {headers: true}"] {
        tells_when_they_are_too_many(more);
    }
}

fn tells_when_they_are_too_many(more: &str) {
    let mut gate = Gate::new(&format!(
        "limits: [{{Url: /, rules: [{{name: posts, actor: account, unit: day, rpu: 2, algo: W, scope: local,
           quota: {{accounts: 100, error: 0.0001}}}}]}}]\n{more}"
    ));
    let account = |number: u32| from(&format!("account-{number}"));
    assert!((0..101).all(|number| gate.admits(&account(number))));
    assert_eq!(
        gate.metrics(),
        ["diana.ns.rule.posts.allowed 101", "diana.ns.rule.posts.keys +101"]
    );
    assert!((0..5).all(|number| gate.admits(&account(number))));
    let told = gate.metrics();
    assert_eq!(told, ["diana.ns.rule.posts.allowed 5", "diana.ns.rule.posts.overflow 5"]);
    gate.wait(DAY);
    gate.engine.tidy(gate.clock.0.get());
    assert_eq!(gate.metrics(), ["diana.ns.rule.posts.keys -101"], "though nobody comes");
    assert!(gate.admits(&account(0)));
    assert_eq!(gate.metrics(), ["diana.ns.rule.posts.allowed 1", "diana.ns.rule.posts.keys +1"]);
}

/// No account has more of its own before the day is over.
#[test]
fn a_quota_tells_how_long_its_day_lasts() {
    let mut gate = Gate::new(
        "accepted: {headers: true}
limits: [{Url: /, rules: [{name: posts, actor: account, unit: day, rpu: 5, algo: W, scope: local,
           quota: {accounts: 1000}}]}]",
    );
    for left in (0..5).rev() {
        let verdict = gate.decide(&from("ann"));
        let Verdict::Admit(_, Some(report)) = verdict else { panic!("{verdict:?}") };
        // From 22:14 by the clock of the gate.
        let told = format!("\"posts\";r={left};t=6360");
        assert_eq!(field(&report.headers(), "ratelimit"), Some(&*told));
    }
}
