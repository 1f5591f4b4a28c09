//! Redirects that the gateway follows itself.

use std::iter;
use std::thread;

use serde_json::json;

use super::upstream::{self, ACT};
use crate::harness::Gateway;
use crate::metrics::settles;

const RULES: &str = "
limits:
  - Url: /
    rules:
      - {name: places, actor: account, in_flight: 3}
      - {name: tokens, actor: account, unit: day, rpu: 100000, algo: W,
         cost: {response: {header: x-tokens-used}, reserve: 100, max: 300}}
  - Url: /elsewhere
    rules: [{name: elsewhere, actor: account, unit: day, rpu: 100000, algo: W}]
";

/// Whoever was let through goes on to where it is sent, however many wait for its place, and is charged once.
#[test]
fn a_request_that_comes_once_more_is_judged_by_new_rules_only() {
    const CLIENTS: usize = 24;
    const EACH: usize = 5;
    const FORGED: u64 = 20;
    let service = upstream::start();
    let redirected = json!({"max_internal_redirects": 1});
    let to = |prefix: &str, route| json!({"match": {"prefix": prefix}, "route": route});
    let moves = json!({"cluster": "upstream", "internal_redirect_policy": redirected});
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        to("/moves", moves),
        to("/", json!({"cluster": "upstream"})),
    ]}]});
    let envoy = Gateway::with(RULES)
        .workers(3)
        .cluster("upstream", service.port)
        .routed(routes, json!({}))
        .start();
    let headers =
        [("x-account-id", "ann"), (ACT, "status 302 to http://here/elsewhere tokens 40 sleep 2")];
    let went_on: u64 = thread::scope(|threads| {
        // Most are refused, and come again.
        let client = || {
            let all = iter::repeat_with(|| envoy.get("/moves", &headers).status);
            all.filter(|status| *status == 302).take(EACH).count()
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| threads.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().unwrap() as u64).sum()
    });
    let arrivals = service.arrivals();
    let came = |path: &str| arrivals.iter().filter(|it| it.path == path).count() as u64;
    assert_eq!((came("/moves"), came("/elsewhere")), (went_on, went_on));
    // Nobody passes for one that comes once more by saying so.
    let forged = [
        ("x-account-id", "ann"),
        ("x-envoy-original-url", "http://here/moves"),
        ("x-envoy-internal", "true"),
        (ACT, "tokens 40"),
    ];
    assert!((0..FORGED).all(|_| envoy.get("/elsewhere", &forged).status == 200));
    settles(&envoy, "rule.places.in_flight", 0);
    let all = went_on + FORGED;
    for rule in ["places", "tokens", "elsewhere"] {
        settles(&envoy, &format!("rule.{rule}.allowed"), all);
    }
    settles(&envoy, "rule.tokens.refunded", 60 * all);
    envoy.assert_unharmed();
}
