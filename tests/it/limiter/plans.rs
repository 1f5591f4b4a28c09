//! Requests under plans of a rule, selected by the request or by trusted data.

mod bans_and_quotas;

use diana_limiter::{Explained, Verdict};
use diana_store::permit::End;
use kit::fake::FakeRequest;

use super::{Gate, from};

const SECOND: u64 = 1_000_000;

/// A request of an account with this claim in its token, in the host's encoding.
fn with_claim(account: &str, claim: impl AsRef<[u8]>) -> FakeRequest {
    let path = ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "p", "plan"];
    from(account).property(&path, claim)
}

fn rule(fields: &str) -> Gate {
    let by = "by: [{jwt_claim: plan, payload: p}]";
    Gate::new(&format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: minute, {}, scope: local}}]}}]\n\
         accepted: {{headers: true, filter_state: true}}",
        fields.replace("BY", by)
    ))
}

fn admitted(gate: &mut Gate, request: &FakeRequest) -> usize {
    (0..100).take_while(|_| gate.admits(request)).count()
}

/// A number in the host's encoding.
fn number(account: &str, number: f64) -> FakeRequest {
    with_claim(account, number.to_le_bytes())
}

#[test]
fn limit_from_data_works_with_any_algorithm() {
    for more in [
        "algo: TB, burst: 20",
        "algo: LB, max_delay: 50ms, cost: 7",
        "algo: TB, warm_up: 2s",
        "algo: LB, warm_up: 2s",
        "algo: W, cost: 7",
        "algo: SW, slices: 3, cost: 7",
    ] {
        let mut gate =
            rule(&format!("{more}, rpu: {{jwt_claim: plan, payload: p, default: 0, max: 100000}}"));
        for limit in [0.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 999.0, 100_000.0, 1e12] {
            admitted(&mut gate, &number("ann", limit));
            gate.wait(SECOND);
        }
        assert_eq!(admitted(&mut gate, &number("bob", 0.0)), 0, "{more}");
        assert!(admitted(&mut gate, &number("cid", 100_000.0)) > 0, "{more}");
    }
}

#[test]
fn plan_sets_the_in_flight_slots() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: r, actor: account, in_flight: 2, plans: {by: [{header: x-plan}], of: {gold: {in_flight: 4}}}}]}]",
    );
    let gold = from("ann").header("x-plan", "gold");
    let mut open = Vec::new();
    for (request, most) in [(from("ann"), 2), (gold.clone(), 2), (from("ann"), 0)] {
        for _ in 0..most {
            let Verdict::Admit(permit, _) = gate.decide(&request) else { panic!() };
            open.push(permit);
        }
        assert!(matches!(gate.decide(&request), Verdict::Refuse(_)));
    }
    open.drain(..3).for_each(drop);
    assert!(matches!(gate.decide(&from("ann")), Verdict::Admit(..)));
}

#[test]
fn plan_sets_the_reservation() {
    let mut gate = rule(
        "rpu: 100, algo: W, cost: {response: {header: x-used}, reserve: 10, max: 50},
         plans: {BY, of: {gold: {rpu: 1000, cost: {reserve: 40}}}}",
    );
    let Verdict::Admit(free, Some(report)) = gate.decide(&from("ann")) else { panic!() };
    assert_eq!(report.headers().get("ratelimit"), Some(r#""r";r=90;t=60"#));
    let Verdict::Admit(gold, Some(report)) = gate.decide(&with_claim("ann", "gold")) else {
        panic!()
    };
    assert_eq!(report.headers().get("ratelimit"), Some(r#""r";r=950;t=60"#));
    // Both clients leave before a response.
    [free, gold].into_iter().for_each(|permit| permit.finish(End::Left));
    let Verdict::Admit(_permit, Some(report)) = gate.decide(&from("ann")) else { panic!() };
    assert_eq!(report.headers().get("ratelimit"), Some(r#""r";r=90;t=60"#));
}

#[test]
fn explanation_names_the_plan() {
    let mut gate = rule("rpu: 3, algo: W, plans: {BY, of: {gold: {rpu: 5}, staff: unlimited}}");
    assert_eq!(admitted(&mut gate, &with_claim("long", vec![b'x'; 60_000])), 3, "no plan's name");
    let mut explained = |plan| {
        let verdict = gate.limiter.decide_explained(&with_claim("ann", plan), 0, &gate.clock);
        let Verdict::Admit(_, Some(report)) = verdict else { panic!("{verdict:?}") };
        Explained::all(&report.explained)
    };
    assert_eq!(explained("staff"), r#"[{"rule":"r","decision":"skipped","why":"plan"}]"#);
    assert!(explained("gold").contains(r#""plan":"gold""#));
}
