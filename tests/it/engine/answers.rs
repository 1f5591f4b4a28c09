//! What callers are told in the answer, as it is configured.

use std::collections::BTreeSet;

use diana_core::report::Refusal;
use diana_core::verdict::Verdict;
use kit::told::Told;

use super::{Gate, field, from};

/// The refusal of the one rule `r`, which admits two an hour, under this response.
pub fn refusal(response: &str) -> Refusal {
    refusal_of("algo: W, rpu: 2", response)
}

fn refusal_of(rule: &str, response: &str) -> Refusal {
    let mut gate = Gate::new(&format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: hour, scope: local, {rule}}}]}}]
response: {response}"
    ));
    (0..9).for_each(|_| _ = gate.admits(&from("ann")));
    gate.refusal(&from("ann"))
}

#[test]
fn a_body_of_pieces() {
    let refusal = refusal(
        r#"{body: '{"rule": "{rule}", "in": {retry_after}, "of": {limit}, "left": {remaining}, "id": "{id}", "{rules}{": 1}'}"#,
    );
    assert!(refusal.tells_id());
    let body = |id: &[u8]| refusal.body(id);
    let told = |id: &str| {
        format!(
            r#"{{"rule": "r", "in": 2760, "of": 2, "left": 0, "id": "{id}", "{{rules}}{{": 1}}"#
        )
    };
    assert_eq!(body(b"a-1_B.2"), told("a-1_B.2"));
    assert_eq!(body("x".repeat(128).as_bytes()), told(&"x".repeat(128)));
    for id in [&b""[..], b"a b", b"a\"b", b"a\r\nb: c", b"a,b", b"\xff", &[b'x'; 129], b"{rule}"] {
        assert_eq!(body(id), told(""), "{id:?}");
    }
    assert_eq!(refusal.content_type(), "text/plain");
}

#[test]
fn nothing_is_told_that_is_not() {
    let never = refusal_of("rpu: 0", "{body: 'in {retry_after} s by {rule}{id}'}");
    assert_eq!(never.body(b"1"), "in  s by r1");
    let hidden = refusal_of("rpu: 1, algo: W, expose: false", "{body: 'by {rule}'}");
    assert_eq!(hidden.body(b""), "by ");
    assert!(!hidden.tells_id());
    let plain = refusal("{status: 429}");
    assert_eq!(plain.body(b"1"), "rate limit exceeded");
}

#[test]
fn problems_of_rfc_9457() {
    let told = |refusal: &Refusal| -> serde_json::Value {
        assert_eq!(refusal.content_type(), "application/problem+json");
        serde_json::from_str(&refusal.body(b"7")).unwrap()
    };
    let quota = told(&refusal(
        r#"{status: 429, problem: true, body: "\"{rule}\" \\ {id}\n\tgr\u00fcn {retry_after}"}"#,
    ));
    let kind = |name: &str| format!("https://iana.org/assignments/http-problem-types#{name}");
    assert_eq!(
        quota,
        serde_json::json!({
            "type": kind("quota-exceeded"),
            "title": "Quota exceeded",
            "status": 429,
            "detail": "\"r\" \\ 7\n\tgr\u{fc}n 2760",
            "violated-policies": ["r"],
        })
    );
    let capacity = told(&refusal("{problem: true}"));
    assert_eq!(capacity["type"], kind("temporary-reduced-capacity"));
    assert_eq!(
        (&capacity["status"], &capacity["detail"]),
        (&503.into(), &"rate limit exceeded".into())
    );
    let banned = "rpu: 0, ban: {after: 3, within: 1h, for: 1h}";
    let banned = told(&refusal_of(banned, "{problem: true, status: 429}"));
    assert_eq!(banned["type"], kind("abnormal-usage-detected"));
    let hidden = told(&refusal_of("rpu: 0, expose: false", "{problem: true, status: 429}"));
    assert_eq!(hidden.get("violated-policies"), None);
}

#[test]
fn only_rules_that_refuse_are_violated() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [
  {name: one, actor: all, unit: hour, rpu: 1, algo: W, scope: local},
  {name: two, actor: all, unit: hour, rpu: 9, algo: W, scope: local},
  {name: three, actor: all, unit: day, rpu: 1, algo: W, scope: local}]}]
response: {problem: true}",
    );
    assert!(gate.admits(&from("ann")));
    let refusal = gate.refusal(&from("ann"));
    let body = refusal.body(b"");
    assert!(body.ends_with(r#""violated-policies":["one","three"]}"#), "{body}");
}

#[test]
fn jitter_comes_on_top_and_is_the_same_for_a_caller_and_a_second() {
    let gate = |jitter: &str| {
        Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{actor: account, unit: day, rpu: 0, algo: W, scope: local,
               ban: {{after: 1, within: 1h, for: 100s}}}}]}}]
response: {{jitter: {jitter}, body: '{{retry_after}}'}}"
        ))
    };
    let told = |gate: &mut Gate, account: &str| {
        let refusal = gate.refusal(&from(account));
        let header = field(&refusal.headers(), "retry-after").unwrap().to_owned();
        assert_eq!(refusal.body(b""), header);
        header.parse::<u64>().unwrap()
    };
    let (mut plain, mut jittered) = (gate("0"), gate("20s"));
    let mut seen = BTreeSet::new();
    for caller in 0..200 {
        let account = format!("a{caller}");
        // The first one is refused by the rule, for good; the next ones by the ban.
        assert!(!plain.admits(&from(&account)) && !jittered.admits(&from(&account)));
        assert_eq!(told(&mut plain, &account), 100);
        let first = told(&mut jittered, &account);
        assert_eq!(told(&mut jittered, &account), first, "the same second");
        assert!((100..=120).contains(&first), "{first}");
        seen.insert(first);
    }
    assert!(seen.len() > 15, "{seen:?}");
    let later: BTreeSet<u64> = (1..20)
        .map(|seconds| {
            jittered.wait(1_000_000);
            told(&mut jittered, "a7") + seconds
        })
        .collect();
    assert!(later.len() > 5 && later.iter().all(|told| (100..=120).contains(told)), "{later:?}");
}

#[test]
fn jitter_is_anything_from_none_to_all_of_what_is_configured() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 0, algo: W, scope: local}]}]
response: {jitter: 1ms}",
    );
    let added: BTreeSet<u64> =
        (0..20_000).map(|caller: u32| gate.refusal(&from(&caller.to_string())).jitter).collect();
    assert!(added.into_iter().eq(0..=1000));
}

#[test]
fn one_rule_in_x_ratelimit_fields() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [
  {name: wide, actor: all, unit: hour, rpu: 9, algo: W, scope: local},
  {name: near, actor: all, unit: minute, rpu: 2, algo: W, scope: local}]}]
accepted: {headers: true}
response: {fields: x-ratelimit}",
    );
    let told = |fields: &[(&'static str, String)]| {
        assert_eq!(field(fields, "ratelimit"), None);
        ["limit", "remaining", "reset"]
            .map(|what| field(fields, &format!("x-ratelimit-{what}")).map(str::to_owned).unwrap())
    };
    let Verdict::Admit(_, Some(report)) = gate.decide(&from("ann")) else { panic!("refused") };
    assert_eq!(told(&report.headers()), ["2", "1", "60"]);
    assert!(gate.admits(&from("ann")));
    let refusal = gate.refusal(&from("ann"));
    assert_eq!(told(&refusal.headers()), ["2", "0", "60"]);
    assert_eq!(field(&refusal.headers(), "retry-after"), Some("60"));
    for _ in 0..3 {
        gate.wait(60_000_000);
        (0..3).for_each(|_| _ = gate.admits(&from("ann")));
    }
    gate.wait(60_000_000);
    assert!(gate.admits(&from("ann")));
    // The one that refuses.
    assert_eq!(told(&gate.refusal(&from("ann")).headers()), ["9", "0", "2520"]);
}

#[test]
fn the_time_to_the_reset_of_every_rule_that_shows() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [
  {name: w, actor: all, unit: minute, rpu: 9, algo: W, scope: gateway},
  {name: sw, actor: all, unit: minute, rpu: 9, algo: SW, scope: local},
  {name: tb, actor: all, unit: minute, rpu: 6, scope: local},
  {name: lb, actor: all, unit: minute, rpu: 12, algo: LB, scope: local, max_delay: 20s}]}]
accepted: {headers: true, filter_state: true}",
    );
    gate.wait(7_000_000);
    let Verdict::Admit(_, Some(report)) = gate.decide(&from("ann")) else { panic!("refused") };
    assert_eq!(
        field(&report.headers(), "ratelimit"),
        Some(r#""w";r=8;t=53, "sw";r=8;t=61, "tb";r=5;t=10, "lb";r=0;t=5"#)
    );
    let state = report.by.unwrap().state();
    assert!(state.contains(" limit=12 remaining=0 reset=5.000000s key="), "{state}");
}

/// Of a rule that was not charged and of which nothing is used there will not be more.
#[test]
fn there_is_no_reset_of_what_is_full() {
    for scope in ["local", "gateway"] {
        let mut gate = Gate::new(&format!(
            "limits: [{{Url: /, rules: [
  {{name: none, actor: all, unit: minute, rpu: 0, scope: {scope}}},
  {{name: full, actor: all, unit: minute, rpu: 9, scope: {scope}}}]}}]"
        ));
        let told = gate.refusal(&from("ann")).headers();
        assert_eq!(field(&told, "ratelimit"), Some(r#""none";r=0, "full";r=9"#), "{scope}");
    }
}

#[test]
fn upstream_is_told_which_rules_in_shadow_would_have_refused() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [
  {name: one, actor: all, unit: hour, rpu: 1, algo: W, scope: local, shadow: true},
  {name: two, actor: all, unit: hour, rpu: 2, algo: W, scope: local, shadow: true},
  {name: three, actor: all, unit: hour, rpu: 9, algo: W, scope: local}]}]
mark: X-Diana-Limited",
    );
    let mut told = || match gate.decide(&from("ann")) {
        Verdict::Admit(_, report) => report.and_then(|report| report.mark),
        refused => panic!("{refused:?}"),
    };
    assert_eq!(told(), None);
    assert_eq!(told(), Some(("x-diana-limited".into(), "one".into())));
    assert_eq!(told(), Some(("x-diana-limited".into(), "one, two".into())));
}

#[test]
fn those_near_a_limit_are_counted() {
    for scope in ["local", "gateway", "global"] {
        for algo in ["W", "SW", "TB"] {
            let mut gate = Gate::new(&format!(
                "{{Url: /, rules: [{{name: r, actor: all, unit: hour, rpu: 10, algo: {algo}, scope: {scope},
                   near: 80}}]}}"
            ));
            (0..13).for_each(|_| _ = gate.admits(&from("ann")));
            let metrics = gate.metrics();
            assert!(
                metrics.contains(&"diana.ns.rule.r.near 2".into()),
                "{algo} {scope}: {metrics:?}"
            );
        }
    }
}
