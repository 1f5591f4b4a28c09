//! Requests that are judged by the plans of a rule, as they say it themselves or as trusted data does.

mod beside;

use diana_core::permit::End;
use diana_core::report::explained::Explained;
use diana_core::verdict::Verdict;
use kit::fake::FakeRequest;
use kit::told::Told;

use super::{Gate, field, from};

const SECOND: u64 = 1_000_000;

/// A request of an account, whose token says something of its plan as it is stored.
fn says(account: &str, claim: impl AsRef<[u8]>) -> FakeRequest {
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

const TIERS: &str =
    "rpu: 3, algo: W, plans: {BY, of: {gold: {rpu: 5}, none: {rpu: 0}, staff: unlimited}}";

fn admitted(gate: &mut Gate, request: &FakeRequest) -> usize {
    (0..100).take_while(|_| gate.admits(request)).count()
}

#[test]
fn everybody_has_the_numbers_of_its_plan_and_else_those_of_the_rule() {
    let mut gate = rule(TIERS);
    assert_eq!(admitted(&mut gate, &says("gold", "gold")), 5);
    assert_eq!(admitted(&mut gate, &says("none", "none")), 0);
    assert_eq!(admitted(&mut gate, &says("staff", "staff")), 100);
    for (account, other) in [("a", "Gold"), ("b", "gold "), ("c", "own"), ("d", "goldgold")] {
        assert_eq!(admitted(&mut gate, &says(account, other)), 3, "{other}");
    }
    assert_eq!(admitted(&mut gate, &says("e", [0; 8])), 3);
    assert_eq!(admitted(&mut gate, &says("f", vec![b'x'; 60_000])), 3);
    assert_eq!(admitted(&mut gate, &from("nobody said")), 3);
}

#[test]
fn what_was_used_stays_used_when_a_plan_changes() {
    let mut gate = rule(TIERS);
    assert!((0..3).all(|_| gate.admits(&from("ann"))));
    assert!(!gate.admits(&from("ann")));
    assert!(gate.admits(&says("ann", "gold")));
    assert!(!gate.admits(&from("ann")));
    assert!(gate.admits(&says("ann", "staff")), "and counts nothing");
    assert!(gate.admits(&says("ann", "gold")));
    assert!(!gate.admits(&says("ann", "gold")));
    gate.wait(60 * SECOND);
    assert_eq!(admitted(&mut gate, &from("ann")), 3);
}

#[test]
fn clients_and_logs_are_told_the_numbers_and_the_name_of_the_plan() {
    let mut gate = rule(TIERS);
    let Verdict::Admit(_, Some(report)) = gate.decide(&says("ann", "gold")) else { panic!() };
    assert_eq!(field(&report.headers(), "ratelimit-policy"), Some(r#""r";q=5;w=60"#));
    assert_eq!(field(&report.headers(), "ratelimit"), Some(r#""r";r=4;t=60"#));
    let state = report.by.unwrap().state();
    assert!(
        state.starts_with("admitted rule=r scope=local mode=enforced plan=gold limit=5 remaining=4 reset=60.000000s key="),
        "{state}"
    );
    assert_eq!(admitted(&mut gate, &says("ann", "gold")), 4);
    let refusal = gate.refusal(&from("ann"));
    assert_eq!(field(&refusal.headers(), "ratelimit-policy"), Some(r#""r";q=3;w=60"#));
    assert!(!refusal.by.state().contains("plan="), "{}", refusal.by.state());
    let refusal = gate.refusal(&says("ann", "none"));
    assert_eq!(field(&refusal.headers(), "ratelimit-policy"), Some(r#""r";q=0;w=60"#));
    assert_eq!(field(&refusal.headers(), "retry-after"), None, "it never makes sense to come back");
}

#[test]
fn a_bucket_tells_its_own_window_and_wait() {
    let mut gate =
        rule("rpu: 60, plans: {BY, of: {gold: {rpu: 600, burst: 1200}, slow: {rpu: 6}}}");
    for (plan, policy) in [("else", "q=60;w=60"), ("gold", "q=1200;w=120"), ("slow", "q=6;w=60")] {
        let Verdict::Admit(_, Some(report)) = gate.decide(&says(plan, plan)) else { panic!() };
        assert_eq!(field(&report.headers(), "ratelimit-policy"), Some(&*format!("\"r\";{policy}")));
    }
    assert_eq!(admitted(&mut gate, &says("slow", "slow")), 5);
    assert_eq!(field(&gate.refusal(&says("slow", "slow")).headers(), "retry-after"), Some("10"));
}

#[test]
fn the_callers_own_value_chooses_without_a_source_and_stays_its_own() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: r, actor: account, unit: minute, rpu: 2, algo: W, scope: local,
           plans: {of: {ann: {rpu: 4}}}}]}, {Url: /net, rules: [{name: n, actor: net, unit: minute, rpu: 1,
           algo: W, scope: local, plans: {of: {10.0.0.7: {rpu: 2}, '2001:db8::': {rpu: 3}, 10.0.0.8: unlimited}}}]}]
actors: {net: [{client_address: {}}]}
accepted: {filter_state: true}",
    );
    let Verdict::Admit(_, Some(report)) = gate.decide(&from("ann")) else { panic!() };
    assert!(report.by.unwrap().state().contains(" plan=own "));
    assert_eq!(admitted(&mut gate, &from("ann")), 3);
    assert_eq!(admitted(&mut gate, &from("bob")), 2);
    for (address, most) in
        [("10.0.0.7:5", 2), ("10.0.0.9:5", 1), ("10.0.0.8:1", 100), ("[2001:db8::77]:9", 3)]
    {
        let request = FakeRequest::get("/net").from(address);
        assert_eq!(admitted(&mut gate, &request), most, "{address}");
    }
}

#[test]
fn plan_of_a_key_follows_it_in_any_place_and_spelling() {
    let rule = |path: &str, actor: &str, plans: &str| {
        format!(
            "- {{Url: /{path}, rules: [{{name: {path}, actor: {actor}, unit: day, rpu: 9, algo: W, scope: local, \
             plans: {{{plans}}}}}]}}\n"
        )
    };
    let limits = [
        rule("token", "token", "of: {abc: {rpu: 2}, a+b: {rpu: 1}}"),
        rule("key", "key", "of: {a+b: {rpu: 2}, Bearer c: {rpu: 2}}"),
        rule("auth", "auth", "of: {'Bearer  xyz': {rpu: 2}, 'basic YTpi=': {rpu: 2}}"),
        rule("by", "all", "by: [{header: authorization}, {query: plan}], of: {free: {rpu: 2}}"),
    ];
    let actors = "actors:
  token: [{header: authorization}, {query: access_token}]
  key: [{query: api_key}, {cookie: api_key}, {client_address: {}}]
  auth: [{header: authorization}]";
    let mut gate = Gate::new(&format!("limits:\n{}{actors}", limits.concat()));
    let get = FakeRequest::get;
    let with = |path: &str, value: &str| get(path).header("authorization", value);
    for (same, most) in [
        (
            &[with("/token", "Bearer abc"), with("/token", "abc"), get("/token?access_token=abc")]
                [..],
            2,
        ),
        (
            &[
                with("/token", "bearer  a+b"),
                get("/token?access_token=a%2Bb"),
                with("/token", "a%2bb"),
            ],
            1,
        ),
        (&[get("/key?api_key=a%2Bb"), get("/key").header("cookie", "api_key=a+b")], 2),
        (&[get("/key?api_key=c"), get("/key?api_key=Bearer+c")], 2),
        (&[with("/auth", "Bearer xyz"), with("/auth", "bearer   xyz"), with("/auth", "xyz")], 2),
        (&[with("/auth", "Basic YTpi"), with("/auth", "BASIC YTpi==")], 2),
        (&[with("/by", "Bearer free"), get("/by?plan=free"), with("/by", "free")], 2),
        (
            &[
                with("/auth", "Bearer xy"),
                with("/auth", "Basic YTpj"),
                with("/auth", "bearer free"),
            ],
            27,
        ),
    ] {
        let admitted: usize =
            (0..9).map(|_| same.iter().filter(|one| gate.admits(one)).count()).sum();
        assert_eq!(admitted, most, "{same:?}");
    }
}

#[test]
fn a_header_that_comes_twice_chooses_nothing() {
    let mut gate = rule("rpu: 2, algo: W, plans: {by: [{header: x-plan}], of: {gold: {rpu: 5}}}");
    let gold = |account: &str| from(account).header("x-plan", "gold");
    assert_eq!(admitted(&mut gate, &gold("a")), 5);
    assert_eq!(admitted(&mut gate, &gold("b").header("x-plan", "gold")), 2);
}

#[test]
fn several_rules_ask_once_and_each_has_its_own_plans() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [
           {name: a, actor: account, unit: minute, rpu: 9, algo: W, scope: local, plans: tiers},
           {name: b, actor: all, unit: minute, rpu: 20, algo: W, scope: local,
            plans: {by: [{jwt_claim: plan, payload: p}], of: {free: {rpu: 4}, gold: unlimited}}}]}]
plans: {tiers: {by: [{jwt_claim: plan, payload: p}], of: {gold: {rpu: 6}, silver: {rpu: 3}}}}",
    );
    assert_eq!(admitted(&mut gate, &says("ann", "silver")), 3);
    assert_eq!(admitted(&mut gate, &says("bob", "gold")), 6);
    assert_eq!(admitted(&mut gate, &says("cid", "free")), 1, "three were used by the other rule");
}

#[test]
fn unlimited_skips_bans_and_hot_keys() {
    let mut gate = rule(
        "rpu: 1, algo: W, ban: {after: 1, within: 1m, for: 1h}, hot: {over: 1, per: 1s, header: x-hot},
         plans: {BY, of: {staff: unlimited}}",
    );
    assert!(gate.admits(&from("ann")));
    assert!(!gate.admits(&from("ann")));
    assert!(gate.refusal(&from("ann")).by.state().starts_with("banned"));
    assert_eq!(admitted(&mut gate, &says("ann", "staff")), 100);
    assert!(!gate.engine.is_hot());
    assert!(!gate.admits(&from("ann")));
}

/// A number as the host hands it out.
fn number(account: &str, number: f64) -> FakeRequest {
    says(account, number.to_le_bytes())
}

#[test]
fn trusted_data_says_the_limit_itself() {
    let mut gate = rule("algo: W, rpu: {jwt_claim: plan, payload: p, default: 3, max: 50}");
    for (said, most) in [
        (4.0, 4),
        (50.0, 50),
        (51.0, 50),
        (1e9, 50),
        (1e300, 50),
        (f64::INFINITY, 50),
        (0.0, 0),
        (-0.0, 0),
    ] {
        assert_eq!(admitted(&mut gate, &number(&said.to_string(), said)), most, "{said}");
    }
    assert!(!gate.metrics().iter().any(|line| line.contains("limit_missing")));
    for said in [-1.0, -1e9, f64::NAN, f64::NEG_INFINITY, 2.5, 0.001] {
        assert_eq!(admitted(&mut gate, &number(&format!("x{said}"), said)), 3, "{said}");
    }
    let missing = |gate: &mut Gate| {
        gate.metrics().into_iter().find(|line| line.contains("limit_missing")).unwrap_or_default()
    };
    assert_eq!(missing(&mut gate), "diana.ns.rule.r.limit_missing 24");
    // Text, a switch, what is empty, an object, and texts that are as long as a number.
    let texts: [&[u8]; 9] = [
        b"40",
        b"1e9",
        b"\x01",
        b"",
        b"\x08\x01\x12",
        b"platinum",
        b"12345678",
        "zürich!".as_bytes(),
        b"xxxxxx3C",
    ];
    for text in texts {
        assert_eq!(admitted(&mut gate, &says(&format!("{text:?}"), text)), 3, "{text:?}");
    }
    assert_eq!(missing(&mut gate), "diana.ns.rule.r.limit_missing 36");
    let Verdict::Admit(_, Some(report)) = gate.decide(&number("new", 7.0)) else { panic!() };
    assert_eq!(field(&report.headers(), "ratelimit-policy"), Some(r#""r";q=7;w=60"#));
    assert!(!report.by.unwrap().state().contains("plan="));
}

#[test]
fn data_may_say_it_as_text() {
    let mut gate =
        rule("algo: W, rpu: {jwt_claim: plan, payload: p, type: text, default: 3, max: 50}");
    for (said, most) in
        [("40", 40), ("51", 50), ("0", 0), ("99999999999999999999999", 50), ("12345678", 50)]
    {
        assert_eq!(admitted(&mut gate, &says(said, said)), most, "{said}");
    }
    for said in ["1e9", "-5", "2.5", " 4", "", "NaN", "0x10"] {
        assert_eq!(admitted(&mut gate, &says(&format!("x{said}"), said)), 3, "{said}");
    }
}

#[test]
fn what_was_used_stays_used_when_the_data_say_something_else() {
    for algo in ["W", "SW", "TB"] {
        let mut gate = rule(&format!(
            "algo: {algo}, rpu: {{jwt_claim: plan, payload: p, default: 3, max: 500}}"
        ));
        assert_eq!(admitted(&mut gate, &number("ann", 30.0)), 30);
        assert_eq!(admitted(&mut gate, &number("ann", 10.0)), 0, "{algo}");
        assert_eq!(admitted(&mut gate, &number("ann", 0.0)), 0, "{algo}");
        assert_eq!(admitted(&mut gate, &number("ann", 33.0)), 3, "{algo}");
        // More numbers than are kept at a time.
        for most in 34..400 {
            let wanted = f64::from(most);
            assert_eq!(admitted(&mut gate, &number("ann", wanted)), 1, "{algo} {most}");
        }
    }
}

#[test]
fn data_may_say_any_limit_to_any_algorithm() {
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
        for said in [0.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 999.0, 100_000.0, 1e12] {
            admitted(&mut gate, &number("ann", said));
            gate.wait(SECOND);
        }
        assert_eq!(admitted(&mut gate, &number("bob", 0.0)), 0, "{more}");
        assert!(admitted(&mut gate, &number("cid", 100_000.0)) > 0, "{more}");
    }
}

#[test]
fn places_in_flight_are_those_of_the_plan() {
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
fn what_is_reserved_is_what_the_plan_says_and_settled_as_it_was_charged() {
    let mut gate = rule(
        "rpu: 100, algo: W, cost: {response: {header: x-used}, reserve: 10, max: 50},
         plans: {BY, of: {gold: {rpu: 1000, cost: {reserve: 40}}}}",
    );
    let Verdict::Admit(ann, Some(report)) = gate.decide(&from("ann")) else { panic!() };
    assert_eq!(field(&report.headers(), "ratelimit"), Some(r#""r";r=90;t=60"#));
    let Verdict::Admit(gold, Some(report)) = gate.decide(&says("ann", "gold")) else { panic!() };
    assert_eq!(field(&report.headers(), "ratelimit"), Some(r#""r";r=950;t=60"#));
    // Both clients leave before there is a response.
    [ann, gold].into_iter().for_each(|permit| permit.finish(End::Left));
    let Verdict::Admit(_permit, Some(report)) = gate.decide(&from("ann")) else { panic!() };
    assert_eq!(field(&report.headers(), "ratelimit"), Some(r#""r";r=90;t=60"#));
}

#[test]
fn an_operator_who_asks_is_told_the_plan() {
    let mut gate = rule(TIERS);
    gate.engine.explain(true);
    let (verdict, skipped) = gate.engine.decide_explained(&says("ann", "staff"), &gate.clock);
    assert!(matches!(verdict, Verdict::Admit(..)));
    assert_eq!(Explained::all(&skipped), r#"[{"rule":"r","decision":"skipped","why":"plan"}]"#);
    let Verdict::Admit(_, Some(report)) = gate.decide(&says("ann", "gold")) else { panic!() };
    let told = Explained::all(&[Explained::Decided(report.records[0].clone())]);
    assert!(told.contains(r#""plan":"gold""#), "{told}");
}
