use insta::assert_snapshot;

/// What is said about a rule by the day with this `quota`.
fn of(quota: &str) -> String {
    let fields = format!("unit: day, algo: W, scope: local, quota: {quota}");
    super::super::messages(&super::super::with_rule(&fields)).replace("limits[0].rules[0]", "")
}

#[test]
fn values() {
    assert_snapshot!(of("10"), @".quota: found `10`, allowed: a mapping such as `{accounts: 1000000, error: 0.01}`");
    assert_snapshot!(of("{}"), @".quota.accounts: required, allowed: a whole number, 1 … 1000000000");
    assert_snapshot!(of("{accounts: 0}"), @".quota.accounts: found `0`, allowed: a whole number, 1 … 1000000000");
    assert_snapshot!(of("{account: 5}"), @"
    .quota.accounts: required, allowed: a whole number, 1 … 1000000000
    .quota.account: unknown key, allowed: accounts, error, memory; did you mean `accounts`?
    ");
    assert_snapshot!(of("{accounts: 5, error: 0.2}"), @".quota.error: found `0.2`, allowed: the chance that an account is refused too early, 0.0001 … 0.1, such as `0.01`");
    assert_snapshot!(of("{accounts: 5, error: 0.00001}"), @".quota.error: found `0.00001`, allowed: the chance that an account is refused too early, 0.0001 … 0.1, such as `0.01`");
    assert_snapshot!(of("{accounts: 5, error: 0}"), @".quota.error: found `0`, allowed: the chance that an account is refused too early, 0.0001 … 0.1, such as `0.01`");
    assert_snapshot!(of("{accounts: 5, error: 1%}"), @".quota.error: found `1%`, allowed: the chance that an account is refused too early, 0.0001 … 0.1, such as `0.01`");
    assert_snapshot!(of("{accounts: 5, error: 1e-2}"), @".quota.error: found `1e-2`, allowed: the chance that an account is refused too early, 0.0001 … 0.1, such as `0.01`");
    assert_snapshot!(of("{accounts: 5, memory: 1000}"), @".quota.memory: found `1000`, allowed: a size, 1KiB … 384MiB: a whole number of KiB or MiB, such as `64KiB`");
}

#[test]
fn memory() {
    assert_snapshot!(of("{accounts: 10000000, memory: 32MiB}"), @".quota.memory: 32768 KiB are too little, allowed: at least `57721KiB`; or `accounts: 5676975`, or a larger `error`");
    assert_snapshot!(of("{accounts: 10000000, error: 0.0001, memory: 1KiB}"), @".quota.memory: 1 KiB are too little, allowed: at least `170870KiB`; or `accounts: 58`, or a larger `error`");
    assert_snapshot!(of("{accounts: 1000000000}"), @".quota: the quotas up to this one could take 5636 MiB in each worker, allowed: at most 384 MiB; choose fewer `accounts` or a larger `error`");
}

#[test]
fn beside() {
    let of = |fields: &str| {
        let fields = format!("quota: {{accounts: 5}}, {fields}");
        super::super::messages(&super::super::with_rule(&fields)).replace("limits[0].rules[0]", "")
    };
    assert_snapshot!(of("unit: hour, algo: W, scope: local"), @".unit: allowed beside `quota`: day");
    assert_snapshot!(of("unit: day, scope: local"), @".algo: allowed beside `quota`: W");
    assert_snapshot!(of("unit: day, algo: SW, scope: local"), @".algo: allowed beside `quota`: W");
    // What else is wrong does not make other keys wrong.
    assert_snapshot!(of("unit: dya, algo: W, scope: local"), @".unit: found `dya`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`; did you mean `day`?");
    assert_snapshot!(of("unit: day, algo: W"), @".scope: allowed beside `quota`: local, global");
    assert_snapshot!(of("unit: day, algo: W, scope: gateway"), @".scope: allowed beside `quota`: local, global");
    assert_snapshot!(of("unit: day, algo: W, scope: local, rpu: 0"), @".rpu: allowed beside `quota`: 1 or more");
    assert_snapshot!(of("unit: day, algo: W, scope: local, actor: all"), @".actor: allowed beside `quota`: one that tells callers apart");
}
