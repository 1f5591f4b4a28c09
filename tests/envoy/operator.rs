//! Explanations and orders of operators on a real Envoy.

use serde_json::Value;

use crate::harness::{Envoy, Gateway, Response, Upstream, eventually, exchange, request};

pub const TOKEN: &str = "0123456789abcdef";

/// The status and the JSON of the reply to an operator.
pub fn operate(envoy: &Envoy, method: &str, rest: &str) -> (u16, Value) {
    let bearer = format!("Bearer {TOKEN}");
    let request = request(method, &format!("/.diana{rest}"), &[("authorization", &bearer)]);
    let answer = exchange(envoy.port, &request).expect("an answer");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

pub fn explained(answer: &Response) -> Value {
    serde_json::from_str(answer.header("x-diana-explain").expect("it is explained")).unwrap()
}

fn ask(envoy: &Envoy, path: &str) -> Response {
    envoy.get(path, &[("x-diana-explain", TOKEN), ("x-account-id", "ada")])
}

#[test]
fn explanation_covers_admitted_and_refused_requests() {
    let envoy = Gateway::with(
        "explain: {header: x-diana-explain, token_env: DIANA_TOKEN}\n\
         limits:\n\
         - {Url: /, rules: [{name: all, actor: all, unit: day, rpu: 100, algo: W}]}\n\
         - {Url: /a, rules: [{name: ada, actor: account, unit: day, rpu: 2, algo: W}]}\n\
         - {Url: /b, rules: [{name: b, actor: all, unit: day, rpu: 1}]}",
    )
    .variable("DIANA_TOKEN", TOKEN)
    .start_shared();
    let admitted = ask(&envoy, "/a");
    assert_eq!(admitted.status, 200);
    let explanation = explained(&admitted);
    assert_eq!(
        (&explanation[0]["rule"], &explanation[0]["remaining"]),
        (&"all".into(), &99.into())
    );
    assert_eq!((&explanation[1]["rule"], &explanation[1]["remaining"]), (&"ada".into(), &1.into()));
    assert_eq!((&explanation[2]["rule"], &explanation[2]["why"]), (&"b".into(), &"path".into()));
    ask(&envoy, "/a");
    let refused = ask(&envoy, "/a");
    assert_eq!(refused.status, 503);
    let explanation = explained(&refused);
    assert_eq!(
        (&explanation[1]["decision"], &explanation[1]["limit"]),
        (&"refused".into(), &2.into())
    );
    for token in ["0123456789abcdeF", "", "0123456789abcdef0"] {
        let answer = envoy.get("/", &[("x-diana-explain", token)]);
        assert_eq!((answer.status, answer.header("x-diana-explain")), (200, None));
    }
}

/// By the routes of envoy.yaml. One of them disables Diana, and removes the token itself.
#[test]
fn token_reaches_no_upstream() {
    let upstream = Upstream::start();
    let envoy = Gateway::with(
        "explain: {header: x-diana-explain, token_env: DIANA_TOKEN}\n\
         limits: [{Url: /, rules: [{name: never, actor: all, unit: day, rpu: 0, shadow: true}]}]",
    )
    .variable("DIANA_TOKEN", TOKEN)
    .routed_as_shipped(&upstream)
    .start_shared();
    for (path, is_explained) in [("/healthz", false), ("/other", true)] {
        let answer = ask(&envoy, path);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-diana-explain").is_some(), is_explained, "{path}");
        let arrival = upstream.arrivals().pop().unwrap();
        assert_eq!((&*arrival.path, arrival.header("x-diana-explain")), (path, None));
    }
}

/// Sends requests on new connections, which may reach any worker. Returns the number of admitted
/// ones.
fn admitted(envoy: &Envoy, path: &str, requests: usize) -> usize {
    let statuses = envoy.statuses(requests, path, &[("x-account-id", "ada")]);
    statuses.iter().filter(|status| **status == 200).count()
}

#[test]
fn reset_reaches_all_workers() {
    let envoy = Gateway::with(
        "admin: {path: /.diana, token_env: DIANA_TOKEN}\n\
         limits:\n\
         - {Url: /w, rules: [{name: w, actor: account, unit: day, rpu: 40, algo: W}]}\n\
         - {Url: /s, rules: [{name: s, actor: account, unit: day, rpu: 40, algo: SW}]}\n\
         - {Url: /t, rules: [{name: t, actor: account, unit: day, rpu: 40, algo: TB}]}\n\
         - {Url: /b, rules: [{name: b, actor: account, unit: day, rpu: 1, algo: W, \
                              ban: {after: 3, within: 1m, for: 1h}}]}",
    )
    .variable("DIANA_TOKEN", TOKEN)
    .workers(4)
    .start();
    for rule in ["w", "s", "t"] {
        let path = format!("/{rule}");
        let rest = format!("?rule={rule}&actor.account=ada");
        for _ in 0..3 {
            assert_eq!(admitted(&envoy, &path, 80), 40, "{rule}");
            let (status, seen) = operate(&envoy, "POST", &format!("/reset{rest}"));
            assert_eq!((status, &seen["callers"][0]["used"]), (200, &0.into()), "{seen}");
            // Refusals are cached for up to a second.
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        assert_eq!(admitted(&envoy, &path, 40), 40, "{rule}: all of it at once");
        let (_, seen) = operate(&envoy, "GET", &format!("/usage{rest}"));
        assert_eq!(seen["callers"][0]["remaining"], 0, "{seen}");
    }
    admitted(&envoy, "/b", 40);
    let of_b = "?rule=b&actor.account=ada";
    operate(&envoy, "POST", &format!("/reset{of_b}"));
    assert_eq!(admitted(&envoy, "/b", 20), 0, "still banned");
    let (status, _) = operate(&envoy, "POST", &format!("/unban{of_b}"));
    assert_eq!(status, 200);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(admitted(&envoy, "/b", 1), 1);
    let (_, rules) = operate(&envoy, "GET", "/rules");
    assert_eq!(rules["rules"].as_array().unwrap().len(), 4);
    eventually("what all workers admitted", || {
        let (_, rules) = operate(&envoy, "GET", "/rules");
        (rules["rules"][0]["allowed"] == 160).then_some(())
    });
    let lines = envoy.log();
    assert_eq!(lines.matches("admin: reset rule=w key=").count(), 3, "{lines}");
    assert_eq!(operate(&envoy, "POST", "/reset?rule=nobody").0, 404);
    let answer = envoy.get("/.diana/rules", &[("authorization", "Bearer 0123456789abcdeF")]);
    assert_eq!(answer.status, 404);
    assert_eq!(envoy.get("/%2ediana/rules", &[]).status, 200, "that is another path");
}

#[test]
fn invalid_order_gets_a_json_error() {
    let envoy = Gateway::with(
        "admin: {path: /.diana, token_env: DIANA_TOKEN}\n\
         limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 2, algo: W}]}]",
    )
    .variable("DIANA_TOKEN", TOKEN)
    .start_shared();
    assert_eq!(admitted(&envoy, "/", 1), 1);
    for name in ["ada", "%61d%61"] {
        let (status, seen) = operate(&envoy, "GET", &format!("/usage?rule=r&actor.account={name}"));
        assert_eq!((status, &seen["callers"][0]["used"]), (200, &1.into()), "{name}: {seen}");
    }
    for (method, rest, expected) in [
        ("GET", "/usage?rule=nobody&actor.account=ada", 404),
        ("GET", "/usage?rule=r", 400),
        ("GET", "/reset?rule=r&actor.account=ada", 405),
        ("DELETE", "/usage?rule=r&actor.account=ada", 405),
        ("POST", "/ban?rule=r&actor.account=ada&for=5m", 409),
    ] {
        let (status, answer) = operate(&envoy, method, rest);
        assert_eq!(status, expected, "{method} {rest}: {answer}");
        assert!(answer["error"].is_string(), "{method} {rest}: {answer}");
    }
    let bearer = format!("Bearer {TOKEN}");
    let put = request("PUT", "/.diana/rules", &[("authorization", &bearer)]);
    assert_eq!(exchange(envoy.port, &put).unwrap().header("allow"), Some("GET"));
    let twice =
        envoy.get("/.diana/rules", &[("authorization", &bearer), ("authorization", &bearer)]);
    assert_eq!(twice.status, 404);
    // By default, all headers of a request together may take 60 KiB.
    for (length, expected) in [(58 << 10, 200), (61 << 10, 431)] {
        let name = "x".repeat(length);
        let path = format!("/.diana/usage?rule=r&actor.account={name}");
        let answer = envoy.get(&path, &[("authorization", &bearer)]);
        assert_eq!(answer.status, expected, "{length} bytes");
    }
    assert_eq!(admitted(&envoy, "/", 3), 1, "nothing was lifted");
    envoy.assert_unharmed();
}

/// Each gateway counts for itself, and has its own keys.
#[test]
fn key_of_another_gateway_gets_404() {
    let rules = "admin: {path: /.diana, token_env: DIANA_TOKEN}\n\
                 limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 2, algo: W, \
                                            ban: {after: 9, within: 1m, for: 1h}}]}]";
    let gateways = [(); 2].map(|()| Gateway::with(rules).variable("DIANA_TOKEN", TOKEN).start());
    let seen = gateways.each_ref().map(|envoy| {
        assert_eq!(admitted(envoy, "/", 1), 1);
        let (status, seen) = operate(envoy, "GET", "/usage?rule=r&actor.account=ada");
        let (_, rules) = operate(envoy, "GET", "/rules");
        assert_eq!((status, &rules["gateway"]), (200, &seen["gateway"]), "{rules}");
        seen
    });
    let keys = seen.each_ref().map(|seen| seen["callers"][0]["key"].as_str().unwrap());
    let names = seen.each_ref().map(|seen| seen["gateway"].as_str().unwrap());
    assert!(keys[0] != keys[1] && names[0] != names[1], "{seen:?}");
    for (envoy, own, other) in [(&gateways[0], 0, 1), (&gateways[1], 1, 0)] {
        let used = || {
            operate(envoy, "GET", "/usage?rule=r&actor.account=ada").1["callers"][0]["used"].clone()
        };
        for (method, order) in
            [("POST", "unban?"), ("POST", "reset?"), ("POST", "ban?for=5m&"), ("GET", "usage?")]
        {
            let (status, answer) =
                operate(envoy, method, &format!("/{order}rule=r&key={}", keys[other]));
            assert_eq!(status, 404, "{answer}");
            assert!(answer["error"].as_str().unwrap().contains("no such caller in this gateway"));
        }
        assert_eq!(used(), 1);
        // The same order again, and a key as former versions wrote it.
        let (former, _) = keys[own].split_once('-').unwrap();
        for key in [keys[own], keys[own], former] {
            for order in ["unban", "reset"] {
                let (status, answer) =
                    operate(envoy, "POST", &format!("/{order}?rule=r&key={key}"));
                assert_eq!(
                    (status, answer["gateway"].as_str()),
                    (200, Some(names[own])),
                    "{answer}"
                );
            }
            assert_eq!(used(), 0);
        }
        envoy.assert_unharmed();
    }
}
