use super::super::{messages, with_rule};

/// What is said about a rule of ten a second with these fields; the path of the rule is left out.
fn of(fields: &str) -> String {
    messages(&full(fields)).replace("limits[0].rules[0]", "")
}

fn full(fields: &str) -> String {
    let has_limit =
        fields.starts_with("rpu:") || fields.contains(", rpu: 600") || fields.contains(", rpu: {");
    with_rule(&if has_limit { fields.into() } else { format!("rpu: 10, {fields}") })
}

/// About a plan of a token bucket of ten, chosen by a verified token.
fn plan(plan: &str) -> String {
    let by = "by: [{jwt_claim: plan, payload: p}]";
    of(&format!("plans: {{{by}, of: {{gold: {plan}}}}}")).replace(".plans.of.gold", "")
}

#[test]
fn plans_that_mean_nothing() {
    for (written, said) in [
        ("{rpu: 1.5}", ".rpu: found `1.5`, allowed: a whole number, 0 … 1000000000"),
        ("{rpu: 1e10}", ".rpu: found `10000000000`, allowed: a whole number, 0 … 1000000000"),
        ("{rpu: 1000000001}", ".rpu: found `1000000001`, allowed: a whole number, 0 … 1000000000"),
        ("{rpu: -1}", ".rpu: found `-1`, allowed: a whole number, 0 … 1000000000"),
        (
            "{rpu: '50'}",
            ".rpu: found the text `50`, allowed: a whole number, 0 … 1000000000; write 50, without quotes",
        ),
        ("{burst: 0}", ".burst: found `0`, allowed: a whole number, 1 … 1000000000"),
        (
            "{}",
            ": found an empty mapping, allowed: unlimited, or a mapping such as `{rpu: 1000, burst: 2000}`",
        ),
        ("{rpu: 0, burst: 5}", ".burst: means nothing beside `rpu: 0`, which refuses everything"),
        (
            "{max_queue: 5}",
            ".max_queue: means nothing without `max_delay`: an early request is refused, not queued",
        ),
        ("{in_flight: 5}", ".in_flight: means nothing without `in_flight` of the rule"),
        (
            "{cost: {reserve: 5}}",
            ".cost.reserve: means nothing without `cost.response` of the rule",
        ),
    ] {
        assert_eq!(plan(written), said, "{written}");
    }
    let unknown = plan("{slices: 5}");
    assert!(
        unknown.starts_with(
            ".slices: unknown key, allowed: rpu, burst, max_delay, max_queue, in_flight, cost"
        ),
        "{unknown}"
    );
    assert!(
        plan("unlimted").starts_with(": found `unlimted`, allowed: unlimited, or a mapping"),
        "{}",
        plan("unlimted")
    );
}

#[test]
fn what_the_rule_cannot_do_its_plans_cannot() {
    let by = "by: [{jwt_claim: plan, payload: p}]";
    for (fields, said) in [
        (
            "algo: W, plans: {BY, of: {gold: {burst: 5}}}",
            "burst: means nothing to `algo: W`; it is a key of TB",
        ),
        (
            "algo: W, cost: 5, plans: {BY, of: {gold: {rpu: 4}}}",
            ".plans.of.gold.rpu: by this the plan's `cost` has a problem: found `5`, which never fits; allowed: at most `rpu`, 4",
        ),
        (
            "cost: 5, plans: {BY, of: {gold: {burst: 4}}}",
            ".plans.of.gold.burst: by this the plan's `cost` has a problem",
        ),
        (
            "algo: LB, unit: minute, rpu: 600, plans: {BY, of: {gold: {rpu: 6}}}",
            ".plans.of.gold.rpu: found `6`: slots would be further apart than `max_delay`",
        ),
        (
            "count: {status: [401]}, plans: {BY, of: {gold: {max_delay: 1s}}}",
            ".plans.of.gold.max_delay: means nothing to a rule whose `count` is settled when a request ends",
        ),
        (
            "cost: {response: {header: x}, reserve: 0, max: 9}, plans: {BY, of: {gold: {cost: {reserve: 5}}}}",
            ".plans.of.gold.cost.reserve: means nothing where `reserve` of the rule is 0",
        ),
        (
            "cost: {response: {header: x}, reserve: 1, max: 9}, plans: {BY, of: {gold: {cost: {reserve: 10}}}}",
            ".plans.of.gold.cost.reserve: found `10`, allowed: a whole number, 1 … 9",
        ),
        (
            "rpu: {jwt_claim: x, payload: p, default: 1, max: 5}, plans: {BY, of: {gold: {rpu: 5}}}",
            ".plans: means nothing beside an `rpu` that data says",
        ),
    ] {
        let found = of(&fields.replace("BY", by));
        assert!(found.contains(said) && found.lines().count() == 1, "{fields}:\n{found}");
    }
    let in_flight = messages(&format!(
        "limits: [{{Url: /, rules: [{{actor: device, in_flight: 5, plans: {{{by}, of: {{gold: {{rpu: 5}}, free: {{in_flight: 0}}}}}}}}]}}]"
    ));
    assert_eq!(
        in_flight,
        "limits[0].rules[0].plans.of.gold.rpu: means nothing beside `in_flight`\n\
         limits[0].rules[0].plans.of.free.in_flight: found `0`, allowed: a whole number, 1 … 1000000"
    );
}

#[test]
fn who_may_be_unlimited() {
    let chosen = "found `unlimited`, but callers choose the plan themselves";
    for by in ["header: x-plan", "cookie: plan", "query: plan", "jwt_claim: plan, unverified: true"]
    {
        let found = of(&format!(
            "plans: {{by: [{{jwt_claim: plan, payload: p}}, {{{by}}}], of: {{a: unlimited}}}}"
        ));
        assert!(found.starts_with(&format!(".plans.of.a: {chosen}")), "{by}: {found}");
    }
    let own = of("actor: account, plans: {of: {ann: unlimited}}");
    assert!(own.starts_with(&format!(".plans.of.ann: {chosen}")), "{own}");
    for fields in ["actor: all", "actor: [account, device]"] {
        let found = of(&format!("{fields}, plans: {{of: {{ann: {{rpu: 5}}}}}}"));
        assert!(found.starts_with(".plans: `by` is required here"), "{found}");
    }
}

#[test]
fn names_of_plans() {
    let by = "by: [{header: x}]";
    for (name, known) in
        [("own", false), ("''", false), ("'a b'", false), ("gold", true), ("\"\\x01\"", false)]
    {
        let text = full(&format!("plans: {{{by}, of: {{{name}: {{rpu: 5}}}}}}"));
        let parsed = diana_config::parse(text.as_bytes());
        assert_eq!(parsed.is_ok(), known, "{name}");
    }
    assert_eq!(of("plans: {of: {}}"), ".plans.of: found 0 plans, allowed: 1 … 10000");
    assert!(of("plans: {by: [], of: {a: {rpu: 5}}}").contains(".plans.by: found an empty list"));
    assert!(of("plans: tiers").contains(
        ".plans: found `tiers`, allowed: a mapping, since there are no `plans` at the top"
    ));
    let text =
        format!("{}\nplans: {{tiers: {{{by}, of: {{gold: {{rpu: 5}}}}}}}}", full("plans: tier"));
    assert_eq!(
        messages(&text),
        "limits[0].rules[0].plans: found `tier`, allowed: a mapping, tiers; did you mean `tiers`?"
    );
    let text = format!(
        "{}\nplans: {{tiers: {{{by}, of: {{gold: {{burst: 5}}}}}}}}",
        full("algo: W, plans: tiers")
    );
    assert_eq!(
        messages(&text),
        "plans.tiers.of.gold.burst: means nothing to `algo: W`; it is a key of TB"
    );
    let text = format!(
        "{}\nplans: {{tiers: {{of: 5}}, Tiers: {{of: {{a: unlimited}}}}}}",
        with_rule("algo: W")
    );
    assert!(
        messages(&text).starts_with("plans.tiers.of: found `5`, allowed: a mapping"),
        "{}",
        messages(&text)
    );
    assert!(messages(&text).contains("plans.Tiers: not a name"), "{}", messages(&text));
}

#[test]
fn limits_that_data_say() {
    for (rpu, said) in [
        ("{}", ".rpu: found 0 places, allowed: exactly one of metadata, jwt_claim"),
        (
            "{metadata: [a, b], default: 1}",
            ".rpu.max: required, allowed: a whole number, 1 … 1000000000",
        ),
        ("{metadata: [a, b], max: 5}", ".rpu.default: required, allowed: a whole number, 0 … 5"),
        (
            "{metadata: [a, b], max: 5, default: 6}",
            ".rpu.default: found `6`, allowed: a whole number, 0 … 5",
        ),
        (
            "{metadata: [a, b], max: 1000000001, default: 6}",
            ".rpu.max: found `1000000001`, allowed: a whole number, 1 … 1000000000",
        ),
        (
            "{metadata: [a, b], max: 0, default: 0}",
            ".rpu.max: found `0`, allowed: a whole number, 1 … 1000000000",
        ),
        (
            "{metadata: a, max: 5, default: 5}",
            ".rpu.metadata: found `a`, allowed: a list of a namespace and keys",
        ),
        (
            "{jwt_claim: a, max: 5, default: 5}",
            ".rpu.payload: required, allowed: the `payload_in_metadata` of jwt_authn",
        ),
        (
            "{jwt_claim: a, payload: p, metadata: [a, b], max: 5, default: 5}",
            ".rpu: found 2 places, allowed: exactly one of metadata, jwt_claim",
        ),
        (
            "{metadata: [a, b], payload: p, max: 5, default: 5}",
            ".rpu.payload: means nothing without `jwt_claim`",
        ),
        (
            "{header: x-rpu, max: 5, default: 5}",
            ".rpu.header: unknown key, allowed: metadata, jwt_claim, payload, type, default, max",
        ),
        (
            "{jwt_claim: a, unverified: true, max: 5, default: 5}",
            ".rpu.unverified: unknown key, allowed",
        ),
    ] {
        let found = of(&format!("rpu: {rpu}"));
        assert!(found.contains(said), "{rpu}:\n{found}");
    }
    assert!(
        of("unit: day, algo: W, cost: 5, rpu: {metadata: [a, b], default: 1, max: 4}")
            .contains("at most `rpu`, 4")
    );
}

#[test]
fn default_of_a_reported_limit_has_to_fit_as_a_plan_has() {
    let by = "{metadata: [a, b], max: 100, default:";
    for (cost, burst) in [
        ("cost: 50", ""),
        ("cost: {response: {header: x-used}, reserve: 50, max: 60}", ""),
        ("cost: 50", ", algo: W"),
        ("cost: {response: {header: x-used}, reserve: 50, max: 60}", ", algo: SW"),
    ] {
        let rule = |default: u64| of(&format!("unit: day, {cost}{burst}, rpu: {by} {default}}}"));
        let said = "rpu.default: by this the rule's `cost` has a problem: found `50`, which never fits; allowed: at most `rpu`, 49";
        assert!(rule(49).ends_with(said), "{}", rule(49));
        for fits in [50, 0] {
            let text = full(&format!("unit: day, {cost}{burst}, rpu: {by} {fits}}}"));
            assert!(diana_config::parse(text.as_bytes()).is_ok(), "{text}");
        }
        let plan = of(&format!(
            "rpu: 100, unit: day, {cost}{burst}, plans: {{by: [{{metadata: [a, b]}}], of: {{free: {{rpu: 49}}}}}}"
        ));
        assert!(plan.contains("at most `rpu`, 49"), "{plan}");
    }
}
