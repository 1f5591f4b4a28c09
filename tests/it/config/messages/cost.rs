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

#[test]
fn what_the_response_says() {
    assert_snapshot!(of("{response: {}}"), @"
    .cost.max: required, allowed: a whole number, 0 … 1000000000
    .cost.response: found 0 places, allowed: exactly one of header, metadata
    ");
    assert_snapshot!(of("{response: {header: x, metadata: [a, b]}, max: 5, reserve: 6}"), @"
    .cost.response: found 2 places, allowed: exactly one of header, metadata
    .cost.reserve: found `6`, allowed: a whole number, 0 … 5
    ");
    assert_snapshot!(of("{response: {header: 'x y', typed: true}, max: 5, missing: some}"), @"
    .cost.response.header: found `x y`, allowed: the name of a header
    .cost.response.typed: means nothing without `metadata`
    .cost.missing: found `some`, allowed: max, reserve, or a whole number up to `max`
    ");
    assert_snapshot!(of("{response: {metadata: [a], type: float}, max: 5, missing: 6}"), @"
    .cost.response.type: found `float`, allowed: number, text
    .cost.missing: found `6`, allowed: a whole number, 0 … 5
    ");
    assert_snapshot!(of("{response: {metadata: tokens}, max: 5, default: 1}"), @"
    .cost.response.metadata: found `tokens`, allowed: a list of a namespace and keys
    .cost.default: unknown key, allowed: response, reserve, max, missing
    ");
    assert_snapshot!(of("{response: {header: x}, reserve: 11, max: 20}"), @".cost: found `11`, which never fits; allowed: at most `rpu`, 10");
    assert_snapshot!(of("{response: {header: x}, max: 20}, algo: LB"), @".cost: is settled when a request ends, which these rules cannot; allowed: algo: W, SW, or TB without `max_delay` and `warm_up`");
    assert_snapshot!(of("{response: {header: x}, max: 20}, algo: TB, max_delay: 1s"), @".cost: is settled when a request ends, which these rules cannot; allowed: algo: W, SW, or TB without `max_delay` and `warm_up`");
    assert_snapshot!(of("{response: {header: x}, max: 20}, warm_up: 1s"), @".cost: is settled when a request ends, which these rules cannot; allowed: algo: W, SW, or TB without `max_delay` and `warm_up`");
}

#[test]
fn outcomes_that_count() {
    let of = |count: &str| of(&format!("1, count: {count}"));
    assert_snapshot!(of("{}"), @".count: lists no outcome; allowed: a mapping such as `{status: [401, 403, 5xx]}`");
    assert_snapshot!(of("[401]"), @".count: found a list, allowed: a mapping such as `{status: [401, 403, 5xx]}`");
    assert_snapshot!(of("{status: 401}"), @".count.status: found `401`, allowed: a list such as `[401, 5xx]`");
    assert_snapshot!(of("{status: [401, 5xx, 99, 600, 6xx, x, 1.5]}"), @"
    .count.status[2]: found `99`, allowed: a status such as 401, or a class such as 5xx
    .count.status[3]: found `600`, allowed: a status such as 401, or a class such as 5xx
    .count.status[4]: found `6xx`, allowed: a status such as 401, or a class such as 5xx
    .count.status[5]: found `x`, allowed: a status such as 401, or a class such as 5xx
    .count.status[6]: found `1.5`, allowed: a status such as 401, or a class such as 5xx
    ");
    assert_snapshot!(of("{details: via_upstream, failed: 1}"), @".count.details: found `via_upstream`, allowed: a list of reasons such as `[jwt_authn_access_denied]`");
    assert_snapshot!(of("{failed: false}"), @".count: lists no outcome; allowed: a mapping such as `{status: [401, 403, 5xx]}`");
    assert_snapshot!(of("{failed: true}, algo: LB"), @".count: is settled when a request ends, which these rules cannot; allowed: algo: W, SW, or TB without `max_delay` and `warm_up`");
}

#[test]
fn bans_for_outcomes() {
    let of = |more: &str| of(&format!("1, {more}"));
    assert_snapshot!(of("ban: {after: 5, within: 1m, for: 5m, on: counted}"), @".ban.on: `counted` means nothing without `count`");
    assert_snapshot!(of("ban: {after: 5, within: 1m, for: 5m, on: count}"), @".ban.on: found `count`, allowed: refused, counted; did you mean `counted`?");
    assert_snapshot!(of("count: {failed: true}, ban: {after: 31, within: 2s, for: 5m, on: counted}"), @".ban.on: found `31`, which never happens: `rpu` lets at most 30 through `within` that time");
}
