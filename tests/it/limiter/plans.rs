//! Requests under plans of a rule, selected by the request or by trusted data.

mod bans_and_quotas;

use diana_limiter::{Explained, Verdict};
use diana_store::permit::End;
use fastrand::Rng;
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

/// The decision and its report.
fn decision(gate: &mut Gate, request: &FakeRequest) -> String {
    match gate.decide(request) {
        Verdict::Admit(_, report) => {
            report.and_then(|report| Some(report.by?.state())).unwrap_or_default()
        }
        Verdict::Hold(held) => {
            held.position.finish(End::Served);
            format!("held until {}, {:?}", held.until, held.report.by.map(|by| by.state()))
        }
        Verdict::Refuse(refusal) => format!("{} {:?}", refusal.by.state(), refusal.retry),
        Verdict::Pending { .. } => panic!("no rule is global"),
    }
}

/// A plan that ends is the plan until then, and from then on the rule's own limits, as if its
/// callers no longer named it. The oracle is such a caller: changes of plans have laws of their own.
#[test]
fn plan_ends_at_its_instant_and_usage_stays() {
    for seed in (0..200).map(|_| kit::seed::next()) {
        let mut rng = Rng::with_seed(seed);
        let algo = ["W", "SW", "TB", "LB, max_delay: 20s"][rng.usize(0..4)];
        let (own, plan) = (rng.u64(3..20), rng.u64(3..20));
        // Between a minute and two after the gate's clock.
        let second = rng.u64(60..120);
        let until = format!("2023-11-14T23:{:02}:{:02}+01:00", 14 + second / 60, second % 60);
        let text = |plan: String| {
            format!("rpu: {own}, algo: {algo}, plans: {{BY, of: {{gold: {{{plan}}}}}}}")
        };
        let ending = text(format!("rpu: {plan}, until: \"{until}\""));
        println!("seed {seed}: {ending}");
        let (mut ending, mut lasting) = (rule(&ending), rule(&text(format!("rpu: {plan}"))));
        let mut passed = 0;
        for _ in 0..300 {
            let pause = rng.u64(0..SECOND);
            [&ending, &lasting].into_iter().for_each(|gate| gate.wait(pause));
            passed += pause;
            let account = ["ann", "bob"][rng.usize(0..2)];
            let is_over = passed >= second * SECOND;
            let twin = if is_over { from(account) } else { with_claim(account, "gold") };
            let found = decision(&mut ending, &with_claim(account, "gold"));
            assert_eq!(found, decision(&mut lasting, &twin), "after {passed}");
        }
    }
}

/// With `other: unlimited`, too: the end of a plan raises no limit.
#[test]
fn ended_plan_has_the_own_limits_of_its_rule() {
    let until = "until: \"2023-11-14T22:14:01Z\"";
    for more in ["", "other: unlimited, "] {
        let plans = format!("plans: {{BY, {more}of: {{gold: {{rpu: 5, {until}}}}}}}");
        let mut gate = rule(&format!("rpu: 2, algo: W, {plans}"));
        assert_eq!(admitted(&mut gate, &with_claim("ann", "gold")), 5);
        gate.wait(SECOND);
        assert_eq!(admitted(&mut gate, &with_claim("bob", "gold")), 2);
        assert_eq!(admitted(&mut gate, &with_claim("ann", "gold")), 0);
    }
}
