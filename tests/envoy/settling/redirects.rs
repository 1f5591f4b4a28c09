//! Internal redirects of the gateway.

use serde_json::json;

use super::upstream::{self, ACT};
use crate::harness::Gateway;
use crate::metrics::settles;

const RULES: &str = "
limits:
  - Url: /
    rules:
      - {name: places, actor: account, in_flight: 1}
      - {name: tokens, actor: account, unit: day, rpu: 100000, algo: W,
         cost: {response: {header: x-tokens-used}, reserve: 100, max: 300}}
  - Url: /elsewhere
    rules: [{name: elsewhere, actor: account, unit: day, rpu: 100000, algo: W}]
";

/// The first leg has returned its only in-flight slot when the second one begins. Only the second
/// one uses tokens.
#[test]
fn both_legs_are_limited_and_the_second_one_settles() {
    const REQUESTS: u64 = 3;
    let service = upstream::start();
    let redirected = json!({"max_internal_redirects": 1});
    let to = |prefix: &str, route| json!({"match": {"prefix": prefix}, "route": route});
    let moves = json!({"cluster": "upstream", "internal_redirect_policy": redirected});
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        to("/moves", moves),
        to("/", json!({"cluster": "upstream"})),
    ]}]});
    let envoy =
        Gateway::with(RULES).cluster("upstream", service.port).routed(routes, json!({})).start();
    let headers = [("x-account-id", "ann"), (ACT, "status 302 to http://here/elsewhere tokens 40")];
    for _ in 0..REQUESTS {
        assert_eq!(envoy.get("/moves", &headers).status, 302, "from the second leg");
        // Envoy may end the stream, and so free the slot, after the client has received its
        // response.
        settles(&envoy, "rule.places.in_flight", 0);
    }
    let arrivals = service.arrivals();
    let came = |path: &str| arrivals.iter().filter(|it| it.path == path).count() as u64;
    assert_eq!((came("/moves"), came("/elsewhere")), (REQUESTS, REQUESTS));
    settles(&envoy, "rule.places.allowed", 2 * REQUESTS);
    settles(&envoy, "rule.elsewhere.allowed", REQUESTS);
    settles(&envoy, "rule.tokens.refunded", (100 + 60) * REQUESTS);
    envoy.assert_unharmed();
}
