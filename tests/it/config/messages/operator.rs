use insta::assert_snapshot;

/// What is said about settings beside `limits`.
fn of(settings: &str) -> String {
    super::super::messages(&format!("limits: []\n{settings}"))
}

#[test]
fn explain() {
    assert_snapshot!(of("explain: true"), @"explain: found `true`, allowed: a mapping such as `{header: x-diana-explain, token_env: DIANA_TOKEN}`");
    assert_snapshot!(of("explain: {}"), @"
    explain.header: required, allowed: the name of a header
    explain.token_env: required, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`
    ");
    assert_snapshot!(of("explain: {header: host, token_env: a-b, token: secret}"), @"
    explain.header: found `host`, allowed: the name of a header that nothing else uses, such as `x-hot-key`
    explain.token_env: found `a-b`, allowed: the name of a variable: A-Z, a-z, 0-9 and `_`
    explain.token: unknown key, allowed: header, token_env; did you mean `token_env`?
    ");
    assert_snapshot!(of("explain: {header: X-Who, token_env: T}\nactors: {a: [{header: x-who}]}"), @"explain: actor `a` is told by this header; allowed: another one");
}
