//! Requests to which a filter after Diana responds, or which it holds until the client has left.

use serde_json::json;

use super::left;
use super::upstream::{self, ACT};
use crate::harness::{Client, Envoy, Gateway, eventually, hcm_filter, request};
use crate::metrics::settles;

const LIMIT: u64 = 10_000;
const MOST: u64 = 300;

fn rules() -> String {
    format!(
        "accepted: {{headers: true}}
limits:
  - Url: /
    rules:
      - {{name: tokens, actor: account, unit: day, rpu: {LIMIT}, algo: W, scope: gateway,
         cost: {{response: {{header: x-tokens-used}}, reserve: 100, max: {MOST}}}}}
      - {{name: places, actor: all, in_flight: 3, scope: gateway, expose: false}}
  - {{Url: /once, rules: [{{actor: all, unit: day, rpu: 1, algo: W, scope: gateway, count: {{status: [403]}}}}]}}"
    )
}

/// Filters that respond on demand: one with injected faults, one that denies, one with a script.
fn filters(gateway: Gateway) -> Gateway {
    let fault = json!({"abort": {"header_abort": {}, "percentage": {"numerator": 100}},
        "delay": {"header_delay": {}, "percentage": {"numerator": 100}}});
    let denied = json!({"header": {"name": "x-denied", "present_match": true}});
    let policy = json!({"permissions": [denied], "principals": [{"any": true}]});
    let rbac = json!({"rules": {"action": "DENY", "policies": {"some": policy}}});
    let script = "function envoy_on_request(request)
        local tokens = request:headers():get('x-scripted')
        if tokens then request:respond({[':status'] = '200', ['x-tokens-used'] = tokens}, 'scripted') end
    end";
    let lua = json!({"default_source_code": {"inline_string": script}});
    gateway
        .ahead_of(hcm_filter("envoy.filters.http.fault", "fault", "HTTPFault", fault))
        .ahead_of(hcm_filter("envoy.filters.http.rbac", "rbac", "RBAC", rbac))
        .ahead_of(hcm_filter("envoy.filters.http.lua", "lua", "Lua", lua))
}

fn used_by(envoy: &Envoy, account: &str) -> u64 {
    LIMIT - 100 - left(envoy, "/", &[("x-account-id", account), (ACT, "tokens 0")])
}

#[track_caller]
fn assert_used(envoy: &Envoy, account: &str, used: u64) {
    eventually(&format!("{used} used by {account}"), || {
        (used_by(envoy, account) == used).then_some(())
    });
}

#[test]
fn local_reply_of_another_filter_costs_the_maximum() {
    let service = upstream::start();
    let envoy = filters(Gateway::with(&rules()).workers(3).before(&service)).start_shared();
    let abort = ("x-envoy-fault-abort-request", "418");
    for (account, header, status, used) in [
        ("aborted", abort, 418, MOST),
        ("denied", ("x-denied", "yes"), 403, MOST),
        // Its header has no effect, since the response does not come from the upstream.
        ("scripted", ("x-scripted", "40"), 200, MOST),
    ] {
        let answer = envoy.get("/", &[("x-account-id", account), header]);
        assert_eq!(answer.status, status, "{account}");
        assert_used(&envoy, account, used);
    }
    // A client does not escape by leaving while a filter holds the request.
    let mut client = Client::connect(envoy.port).unwrap();
    let held = [("x-account-id", "gone"), ("x-envoy-fault-delay-request", "60000")];
    client.write(&request("GET", "/", &held)).unwrap();
    eventually("the request to be held", || (envoy.active() == 1).then_some(()));
    client.reset();
    assert_used(&envoy, "gone", MOST);
    settles(&envoy, "rule.places.in_flight", 0);
    settles(&envoy, "rule.tokens.untold_client_left", 1);
    settles(&envoy, "rule.tokens.untold_cut", 3);
    // Its status counts like that of any other response.
    for (header, status) in
        [(abort, 418), (abort, 418), (("x-denied", "yes"), 403), (("x-denied", "yes"), 503)]
    {
        eventually(&format!("a {status}"), || {
            (envoy.get("/once", &[header]).status == status).then_some(())
        });
    }
    envoy.assert_unharmed();
}
