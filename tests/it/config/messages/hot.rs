use insta::assert_snapshot;

/// What is said about a rule with this `hot`; the path of the rule is left out.
fn of(hot: &str) -> String {
    let rule = super::super::with_rule(&format!("hot: {hot}"));
    super::super::messages(&rule).replace("limits[0].rules[0]", "")
}

#[test]
fn hot() {
    assert_snapshot!(of("5"), @".hot: found `5`, allowed: a mapping such as `{over: 1000, per: 10s, header: x-hot-key}`");
    assert_snapshot!(of("{}"), @"
    .hot.over: required, allowed: a whole number, 1 … 1000000000
    .hot.per: required, allowed: a duration such as `10s`
    ");
    assert_snapshot!(of("{over: 0, per: 0, top: 0, reveal: 1, header: ''}"), @"
    .hot.over: found `0`, allowed: a whole number, 1 … 1000000000
    .hot.per: found `0`, allowed: a duration, 1s … 1h: a whole number of ms, s, m, h or d, such as `1500ms`
    .hot.top: found `0`, allowed: a whole number, 1 … 100
    .hot.reveal: found `1`, allowed: true or false
    .hot.header: found ``, allowed: the name of a header that nothing else uses, such as `x-hot-key`
    ");
    assert_snapshot!(of("{over: 1000000001, per: 2h, top: 101, hedaer: x}"), @"
    .hot.over: found `1000000001`, allowed: a whole number, 1 … 1000000000
    .hot.per: found `2h`, allowed: a duration, 1s … 1h: a whole number of ms, s, m, h or d, such as `1500ms`
    .hot.top: found `101`, allowed: a whole number, 1 … 100
    .hot.hedaer: unknown key, allowed: over, per, header, top, reveal; did you mean `header`?
    ");
    assert_snapshot!(of("{over: 5, per: 500ms, header: 5}"), @"
    .hot.per: found `500ms`, allowed: a duration, 1s … 1h: a whole number of ms, s, m, h or d, such as `1500ms`
    .hot.header: found `5`, allowed: the name of a header that nothing else uses, such as `x-hot-key`
    ");
}

#[test]
fn header() {
    let of = |name: &str| of(&format!("{{over: 5, per: 1s, header: '{name}'}}"));
    assert_snapshot!(of("x hot"), @".hot.header: found `x hot`, allowed: the name of a header that nothing else uses, such as `x-hot-key`");
    for name in [":path", "Host", "cookie", "connection", "Content-Length", "te", "x-h\u{e9}"] {
        assert!(
            of(name).contains("allowed: the name of a header that nothing else uses"),
            "{name}"
        );
    }
}

#[test]
fn a_header_that_tells_an_actor() {
    assert_snapshot!(of("{over: 5, per: 1s, header: X-Account-Id}"), @".hot.header: actor `account` is told by this header; allowed: another one");
}

#[test]
fn everybody_is_no_key() {
    let rule = super::super::with_rule("actor: all, hot: {over: 5, per: 1s}");
    assert_snapshot!(super::super::messages(&rule), @"limits[0].rules[0].hot: means nothing beside `actor: all`, which is a single caller; leave it out");
}
