//! What an operator is told by the real thing.

use serde_json::Value;

use crate::harness::{Envoy, Gateway, Response};

const TOKEN: &str = "0123456789abcdef";

fn explained(answer: &Response) -> Value {
    serde_json::from_str(answer.header("x-diana-explain").expect("it is explained")).unwrap()
}

fn ask(envoy: &Envoy, path: &str) -> Response {
    envoy.get(path, &[("x-diana-explain", TOKEN), ("x-account-id", "ada")])
}

#[test]
fn why_is_told_whoever_answers() {
    let envoy = Gateway::with(
        "explain: {header: x-diana-explain, token_env: DIANA_TOKEN}\n\
         limits:\n\
         - {Url: /, rules: [{name: all, actor: all, unit: day, rpu: 100, algo: W}]}\n\
         - {Url: /a, rules: [{name: ada, actor: account, unit: day, rpu: 2, algo: W}]}\n\
         - {Url: /b, rules: [{name: b, actor: all, unit: day, rpu: 1}]}",
    )
    .variable("DIANA_TOKEN", TOKEN)
    .start();
    let admitted = ask(&envoy, "/a");
    assert_eq!(admitted.status, 200);
    let told = explained(&admitted);
    assert_eq!((&told[0]["rule"], &told[0]["remaining"]), (&"all".into(), &99.into()));
    assert_eq!((&told[1]["rule"], &told[1]["remaining"]), (&"ada".into(), &1.into()));
    assert_eq!((&told[2]["rule"], &told[2]["why"]), (&"b".into(), &"path".into()));
    ask(&envoy, "/a");
    let refused = ask(&envoy, "/a");
    assert_eq!(refused.status, 503);
    let told = explained(&refused);
    assert_eq!((&told[1]["decision"], &told[1]["limit"]), (&"refused".into(), &2.into()));
    for token in ["0123456789abcdeF", "", "0123456789abcdef0"] {
        let answer = envoy.get("/", &[("x-diana-explain", token)]);
        assert_eq!((answer.status, answer.header("x-diana-explain")), (200, None));
    }
}
