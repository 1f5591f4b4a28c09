use insta::assert_snapshot;

/// What is said about a rule of ten a second with this `cost`; the path of the rule is left out.
fn of(cost: &str) -> String {
    let rule = super::super::with_rule(&format!("cost: {cost}"));
    super::super::messages(&rule).replace("limits[0].rules[0]", "")
}

#[test]
fn cost() {
    assert_snapshot!(of("five"), @".cost: found `five`, allowed: a whole number, 1 … 1000000000");
    assert_snapshot!(of("{}"), @"
    .cost: found 0 places, allowed: exactly one of header, metadata
    .cost.max: required, allowed: a whole number, 1 … 1000000000
    ");
    assert_snapshot!(of("{header: x-cost}"), @".cost.max: required, allowed: a whole number, 1 … 1000000000");
    assert_snapshot!(of("{header: x-cost, metadata: [a, b], max: 5}"), @".cost: found 2 places, allowed: exactly one of header, metadata");
    assert_snapshot!(of("{header: x-cost, max: 11}"), @".cost: found `11`, which never fits; allowed: at most `rpu`, 10");
    assert_snapshot!(of("{header: x-cost, max: 5, default: 6}"), @".cost.default: found `6`, allowed: a whole number, 1 … 5");
    assert_snapshot!(of("{header: x-cost, max: 0, default: 0}"), @"
    .cost.max: found `0`, allowed: a whole number, 1 … 1000000000
    .cost.default: found `0`, allowed: a whole number, 1 … 1000000000
    ");
    assert_snapshot!(of("{header: x-cost, max: 5, type: text}"), @".cost.type: means nothing without `metadata`");
    assert_snapshot!(of("{header: 'x cost', max: 5}"), @".cost.header: found `x cost`, allowed: a header's name");
    assert_snapshot!(of("{header: host, max: 5}"), @".cost.header: `host` says which service is called, not who calls");
    assert_snapshot!(of("{metadata: x-cost, max: 5, type: float}"), @"
    .cost.metadata: found `x-cost`, allowed: a list of a namespace and keys
    .cost.type: found `float`, allowed: number, text
    ");
    assert_snapshot!(of("{haeder: x-cost, max: 5}"), @"
    .cost: found 0 places, allowed: exactly one of header, metadata
    .cost.haeder: unknown key, allowed: header, metadata, type, default, max; did you mean `header`?
    ");
}

#[test]
fn beside_a_quota() {
    let rule =
        "unit: day, algo: W, scope: local, quota: {accounts: 100}, cost: {header: x-cost, max: 5}";
    assert_snapshot!(super::super::messages(&super::super::with_rule(rule)), @"limits[0].rules[0].cost: allowed beside `quota`: a number, the same for all requests");
}
