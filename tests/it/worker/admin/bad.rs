//! Requests for the operator's path as they should not be, and by whoever is no operator.

use super::{RULES, TOKEN, answer, bearing, get, problem, with};
use diana_core::time::SECOND;
use diana_worker::host::Level;
use kit::fake::FakeRequest;
use serde_json::json;

#[test]
fn bad_input_is_told() {
    let mut thread = with(Some(TOKEN), RULES);
    for (method, rest, status) in [
        ("GET", "", 404),
        ("GET", "/", 404),
        ("GET", "/usages", 404),
        ("POST", "/rules", 405),
        ("GET", "/reset?rule=r&actor.account=a", 405),
        ("GET", "/rules?x=1", 400),
        ("GET", "/usage", 400),
        ("GET", "/usage?rule=nobody", 404),
        ("GET", "/usage?rule=%ff", 404),
        ("GET", "/usage?rule=r", 400),
        ("GET", "/usage?rule=r&actor.device=a", 400),
        ("GET", "/usage?rule=r&actor.account=a&actor.account=b", 400),
        ("GET", "/usage?rule=r&actor.account=", 400),
        ("GET", "/usage?rule=a&actor.address=ada", 400),
        ("GET", "/usage?rule=r&actor.account=a&for=5m", 400),
        ("GET", "/usage?rule=r&key=", 400),
        ("GET", "/usage?rule=r&key=26de6e73a1b2c3d4", 400),
        ("GET", "/usage?rule=r&key=26de6e73a1b2c3d426de6e73a1b2c3d", 400),
        ("GET", "/usage?rule=r&key=26de6e73a1b2c3d426de6e73a1b2c3d44", 400),
        ("GET", "/usage?rule=r&key=26de6e73a1b2c3d426de6e73a1b2c3dg", 400),
        ("GET", "/usage?rule=r&key=%2b6de6e73a1b2c3d426de6e73a1b2c3d4", 400),
        ("GET", "/usage?rule=r&key=0x6de6e73a1b2c3d426de6e73a1b2c3d4", 400),
        ("GET", "/usage?rule=r&key=%ff6de6e73a1b2c3d426de6e73a1b2c3d4", 400),
        ("GET", "/usage?rule=r&key=26de6e73a1b2c3d426de6e73a1b2c3d4&actor.account=a", 400),
        ("GET", "/usage?rule=r&key=00000000000000000000000000000000", 400),
        ("POST", "/reset?rule=g&key=26de6e73a1b2c3d426de6e73a1b2c3d4", 404),
        ("GET", "/rules?key=26de6e73a1b2c3d426de6e73a1b2c3d4", 400),
        ("POST", "/ban?rule=r&key=26de6e73a1b2c3d426de6e73a1b2c3d4", 400),
        ("POST", "/ban?rule=r&actor.account=a", 400),
        ("POST", "/ban?rule=r&actor.account=a&for=0s", 400),
        ("POST", "/ban?rule=r&actor.account=a&for=61m", 400),
        ("POST", "/ban?rule=r&actor.account=a&for=99999999999999999999h", 400),
        ("POST", "/ban?rule=r&actor.account=a&for=-5m", 400),
        ("POST", "/ban?rule=a&actor.address=10.0.0.1&for=5m", 409),
    ] {
        assert_eq!(problem(&mut thread, method, rest), status, "{method} {rest}");
    }
    let many: String = (0..70).map(|number| format!("&p{number}=1")).collect();
    assert_eq!(problem(&mut thread, "GET", &format!("/usage?rule=r{many}")), 400);
    assert_eq!(thread.host.lines(), [""; 0], "nothing has changed");
}

#[test]
fn who_asks_with_parameters_that_mean_nothing_is_told_which_ones_do() {
    let mut thread = with(Some(TOKEN), RULES);
    for (rest, allowed) in [
        ("rules?x=1", "none"),
        ("usage?rule=r&actor.account=a&for=5m", "rule, actor.account"),
        ("usage?rule=r&key=26de6e73a1b2c3d426de6e73a1b2c3d4&actor.account=a", "rule, key"),
    ] {
        let (status, told) = answer(&mut thread, bearing("GET", &format!("/.diana/{rest}"), TOKEN));
        let wanted = json!({"error": format!("allowed parameters: {allowed}")});
        assert_eq!((status, told), (400, wanted));
    }
}

#[test]
fn who_asks_by_another_method_is_told_which_one_is_allowed() {
    let mut thread = with(Some(TOKEN), RULES);
    for (method, path, allowed) in
        [("POST", "rules", Some("GET")), ("GET", "reset", Some("POST")), ("GET", "rules", None)]
    {
        let query = if path == "reset" { "?rule=r&actor.account=a" } else { "" };
        let request = bearing(method, &format!("/.diana/{path}{query}"), TOKEN);
        assert!(!thread.ask(1, 90, request));
        let (_, reply) = thread.host.replies.borrow_mut().pop().unwrap();
        let told = reply.headers().find(|(name, _)| *name == "allow");
        assert_eq!(told.map(|(_, method)| method), allowed, "{method} {path}");
    }
}

#[test]
fn whoever_does_not_bear_the_token_finds_nothing() {
    let mut thread = with(Some(TOKEN), RULES);
    let nothing = json!({"error": "not found"});
    let wrong = ["", "a token of 24 characterz", "a token of 24 characters "];
    let mut requests: Vec<FakeRequest> =
        wrong.iter().map(|token| bearing("GET", "/.diana/rules", token)).collect();
    requests.push(FakeRequest::get("/.diana/rules"));
    requests.push(FakeRequest::get("/.diana/rules").header("authorization", TOKEN));
    requests.push(bearing("GET", "/.diana/rules", TOKEN).header("authorization", "Bearer x"));
    for request in requests {
        assert_eq!(answer(&mut thread, request), (404, nothing.clone()));
    }
    for _ in 0..10 {
        answer(&mut thread, bearing("GET", "/.diana/rules", "wrong, and long enough"));
    }
    assert_eq!(
        answer(&mut thread, bearing("GET", "/.diana/rules", TOKEN)),
        (404, nothing.clone()),
        "unread"
    );
    thread.pass(SECOND);
    get(&mut thread, "/rules");
    for (token, status, complaints) in [
        (None, 404, 1),
        (Some("fifteen letters"), 404, 1),
        (Some("sixteen letters "), 200, 0),
        (Some(TOKEN), 200, 0),
    ] {
        let mut thread = with(token, RULES);
        let given = token.unwrap_or_default();
        assert_eq!(answer(&mut thread, bearing("GET", "/.diana/rules", given)).0, status);
        assert!(thread.configure(2, "admin: {path: /.other, token_env: DIANA_TOKEN}\nlimits: []"));
        let log = thread.host.log.take();
        assert_eq!(
            log.iter().filter(|(level, _)| *level == Level::Error).count(),
            complaints,
            "{log:?}"
        );
    }
}

#[test]
fn only_plain_spellings_of_the_path_are_meant() {
    let mut thread = with(Some(TOKEN), "limits: []");
    for path in [
        "/%2ediana/rules",
        "/.diana;x/rules",
        "//.diana/rules",
        "/x/../.diana/rules",
        "/.dianas/rules",
        "/.Diana/rules",
        "/.diana\\rules",
    ] {
        assert!(thread.ask(1, 10, bearing("GET", path, TOKEN)), "{path} goes on");
    }
    assert!(thread.host.replies.borrow().is_empty());
}
