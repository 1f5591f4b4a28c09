//! What clients, logs and metrics are told.

use diana_core::verdict::Verdict;
use kit::told::Told;

use super::{Gate, Lines, field, from};

#[test]
fn a_shadow_rule_reports_and_never_refuses() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules:
              - {name: dark, actor: all, unit: hour, rpu: 1, shadow: true, scope: local}
              - {name: live, actor: all, unit: hour, rpu: 3, scope: local}",
    );
    assert!(gate.decide(&from("ann")).is_pass());
    match gate.decide(&from("ann")) {
        Verdict::Admit(_, Some(report)) => {
            assert!(report.headers().is_empty());
            assert!(
                report.by.unwrap().state().starts_with("shadow rule=dark scope=local mode=shadow")
            );
        }
        refused => panic!("{refused:?}"),
    }
    assert!(gate.admits(&from("ann")));
    let refusal = gate.refusal(&from("ann"));
    assert_eq!(field(&refusal.headers(), "ratelimit-policy"), Some(r#""live";q=3;w=3600"#));
    assert_eq!(
        gate.metrics(),
        [
            "diana.ns.rule.dark.allowed 1",
            "diana.ns.rule.dark.keys +1",
            "diana.ns.rule.dark.shadow_refused 3",
            "diana.ns.rule.live.allowed 3",
            "diana.ns.rule.live.keys +1",
            "diana.ns.rule.live.refused 1",
        ]
    );
}

#[test]
fn accepted_requests_report_what_was_asked_for() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules:
              - {name: wide, actor: all, unit: hour, rpu: 9, algo: W, scope: local}
              - {name: near, actor: all, unit: hour, rpu: 2, algo: W, scope: local}
              - {name: hidden, actor: all, unit: hour, rpu: 5, expose: false, scope: local}
accepted: {headers: true, filter_state: true}",
    );
    let Verdict::Admit(_, Some(report)) = gate.decide(&from("ann")) else { panic!("refused") };
    let fields = report.headers();
    // Less than a minute of the hour has passed.
    assert_eq!(field(&fields, "ratelimit"), Some(r#""wide";r=8;t=2760, "near";r=1;t=2760"#));
    assert_eq!(field(&fields, "ratelimit-policy"), Some(r#""wide";q=9;w=3600, "near";q=2;w=3600"#));
    assert!(report.by.unwrap().state().starts_with("admitted rule=near"));
}

#[test]
fn nothing_is_told_that_was_not_asked_for() {
    for (headers, filter_state) in [(true, false), (false, true), (true, true)] {
        let mut gate = Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{name: r, actor: all, unit: hour, rpu: 9, scope: local}}]}}]
accepted: {{headers: {headers}, filter_state: {filter_state}}}"
        ));
        let Verdict::Admit(_, Some(report)) = gate.decide(&from("ann")) else { panic!("refused") };
        assert_eq!((!report.headers().is_empty(), report.by.is_some()), (headers, filter_state));
    }
}

/// Whatever is told of other requests: it is the rule that holds it for longest.
#[test]
fn of_a_held_request_it_is_told_which_rule_holds_it() {
    for more in ["", "accepted: {headers: true}", "accepted: {filter_state: true}"] {
        let line = |name, rpu| {
            format!(
                "{{name: {name}, actor: all, unit: second, rpu: {rpu}, algo: LB, scope: local}}"
            )
        };
        let rules = [line("fast", 100), line("slow", 2), line("quick", 50)].join(", ");
        let mut gate = Gate::new(&format!("limits: [{{Url: /, rules: [{rules}]}}]\n{more}"));
        assert!(gate.admits(&from("ann")));
        let Verdict::Hold(held) = gate.decide(&from("ann")) else { panic!("not held") };
        let state = held.report.by.as_ref().expect("a rule").state();
        assert!(state.starts_with("held rule=slow "), "{state}");
    }
}

/// Nobody waits for a rule in shadow; it is told who would have.
#[test]
fn a_line_in_shadow_holds_nobody() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: dark, actor: all, unit: second, rpu: 2, algo: LB, scope: local,
           shadow: true}]}]",
    );
    assert!(gate.decide(&from("ann")).is_pass());
    let Verdict::Admit(_, Some(report)) = gate.decide(&from("ann")) else { panic!("not told") };
    let state = report.by.unwrap().state();
    let told = "shadow-held rule=dark scope=local mode=shadow wait=0.500000s limit=2 remaining=0 reset=1.000000s key=";
    assert!(state.starts_with(told), "{state}");
    let told = gate.metrics();
    let counts = ["allowed 2", "keys +1", "shadow_held 1"];
    assert_eq!(told, counts.map(|count| format!("diana.ns.rule.dark.{count}")));
}

/// Without a Redis each gateway counts by itself.
#[test]
fn it_is_told_how_widely_a_rule_is_counted() {
    for (scope, told) in [("local", "local"), ("gateway", "gateway"), ("global", "gateway")] {
        let mut gate = Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{name: r, actor: all, unit: hour, rpu: 0, scope: {scope}}}]}}]"
        ));
        let state = gate.refusal(&from("ann")).by.state();
        assert!(state.starts_with(&format!("refused rule=r scope={told} ")), "{state}");
    }
}

#[test]
fn what_refuses_everything_tells_its_unit() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: closed, actor: all, unit: hour, rpu: 0, scope: local}]}]",
    );
    let refusal = gate.refusal(&from("ann"));
    assert_eq!(field(&refusal.headers(), "ratelimit-policy"), Some(r#""closed";q=0;w=3600"#));
}

#[test]
fn refusals_are_logged_once_a_second_and_rule() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: none, actor: all, unit: day, rpu: 0, scope: local}]}]
log: refused",
    );
    let mut logged = 0;
    for _ in 0..50 {
        logged += usize::from(gate.refusal(&from("ann")).is_logged);
        gate.wait(100_000);
    }
    assert_eq!(logged, 5);
}

#[test]
fn an_engine_that_retires_leaves_no_callers_in_the_gauge() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: one, actor: account, unit: day, rpu: 1, scope: local}]}]",
    );
    assert!(gate.admits(&from("ann")) && gate.admits(&from("bob")));
    assert!(gate.metrics().contains(&"diana.ns.rule.one.keys +2".to_owned()));
    let lines = Lines::default();
    gate.engine.retire("ns", gate.clock.0.get(), &lines);
    assert_eq!(lines.0.take(), ["diana.ns.rule.one.keys -2"]);
}

#[test]
fn a_worker_tells_how_it_counts_for_the_fleet() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: one, actor: all, unit: day, rpu: 1, scope: global}]}]",
    );
    assert!(gate.metrics().is_empty(), "Envoy's main thread has a worker, too, that serves nobody");
    assert!(gate.admits(&from("ann")));
    assert!(gate.metrics().contains(&"diana.ns.mode.gateway +1".to_owned()));
    assert!(gate.metrics().is_empty());
    let lines = Lines::default();
    gate.engine.retire("ns", gate.clock.0.get(), &lines);
    assert_eq!(lines.0.take(), ["diana.ns.mode.gateway -1"]);
}

#[test]
fn a_request_without_metadata_counts_once_however_many_rules_look() {
    let missing = "diana.ns.metadata_missing 1";
    for rules in [
        "{actor: tenant, unit: hour, rpu: 1}",
        "{actor: tenant, unit: hour, rpu: 1}, {actor: [tenant, device], unit: hour, rpu: 1}",
    ] {
        let mut gate = Gate::new(&format!(
            "actors: {{tenant: [{{metadata: [a, b]}}]}}
limits: [{{Url: /, rules: [{rules}]}}]"
        ));
        assert!(gate.admits(&from("ann")));
        assert_eq!(gate.metrics(), [missing], "{rules}");
        assert!(gate.admits(&from("ann")));
        assert_eq!(gate.metrics(), [missing], "{rules}");
    }
}

#[test]
fn those_that_were_held_are_counted_among_those_that_were_let_in() {
    let mut gate = Gate::new(
        "{Url: /, rules: [{name: r, actor: all, unit: second, rpu: 1, algo: LB, max_queue: 2, scope: local}]}",
    );
    (0..5).for_each(|_| _ = gate.admits(&from("ann")));
    assert_eq!(
        gate.metrics(),
        [
            "diana.ns.rule.r.allowed 2",
            "diana.ns.rule.r.held 1",
            "diana.ns.rule.r.keys +1",
            "diana.ns.rule.r.refused 3",
        ]
    );
}
