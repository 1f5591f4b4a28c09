//! Browsers of other origins, with the configuration of envoy/cors.yaml.

use crate::harness::{Envoy, Gateway, Response, Upstream, exchange, request};

const SHOP: (&str, &str) = ("origin", "https://shop.example.com");
const OTHER: (&str, &str) = ("origin", "https://other.example.com");
const METHOD: (&str, &str) = ("access-control-request-method", "POST");

/// Three requests a day, so that no delay changes which one is refused.
fn three_a_day(rules: String) -> String {
    let changed = rules.replace("unit: minute, rpu: 60", "unit: day, rpu: 3");
    assert_ne!(changed, rules);
    changed
}

fn options(envoy: &Envoy, headers: &[(&str, &str)]) -> Response {
    exchange(envoy.port, &request("OPTIONS", "/", headers)).unwrap()
}

#[test]
fn refusal_behind_cors_can_be_read_by_scripts() {
    let upstream = Upstream::start();
    let (gateway, cors) = Gateway::as_in_cors_yaml(three_a_day, &upstream);
    let envoy = gateway.behind(cors).start();

    let preflights = || {
        for (origin, allowed) in [(SHOP, Some(SHOP.1)), (OTHER, None)] {
            for _ in 0..5 {
                let answer = options(&envoy, &[origin, METHOD]);
                assert_eq!(answer.status, 200, "{answer:?}");
                assert_eq!(answer.header("access-control-allow-origin"), allowed);
            }
        }
    };
    preflights();
    assert_eq!(upstream.arrivals().len(), 0, "preflights end at the gateway");
    for left in ["2", "1", "0"] {
        let admitted = envoy.get("/", &[SHOP]);
        assert_eq!(admitted.status, 200, "preflights are not counted");
        assert!(admitted.header("ratelimit").unwrap().contains(&format!(";r={left};")));
    }
    let refused = envoy.get("/", &[SHOP]);
    assert_eq!((refused.status, refused.refused()), (429, true));
    assert_eq!(refused.header("access-control-allow-origin"), Some(SHOP.1));
    let exposed = refused.header("access-control-expose-headers").unwrap();
    for field in ["retry-after", "ratelimit", "ratelimit-policy"] {
        assert!(refused.header(field).is_some(), "{field}");
        assert!(exposed.split(", ").any(|name| name == field), "{field} of {exposed}");
    }
    let foreign = envoy.get("/", &[OTHER]);
    assert_eq!((foreign.status, foreign.header("access-control-allow-origin")), (429, None));
    preflights();
    for headers in [&[][..], &[SHOP], &[METHOD]] {
        assert_eq!(options(&envoy, headers).status, 200, "plain OPTIONS go to the service");
    }
    assert_eq!(upstream.arrivals().len(), 6);
}

/// The reason for the order of the filters.
#[test]
fn refusal_before_cors_has_no_cors_headers() {
    let upstream = Upstream::start();
    let (gateway, cors) = Gateway::as_in_cors_yaml(three_a_day, &upstream);
    let envoy = gateway.ahead_of(cors).start();
    assert_eq!(envoy.statuses(3, "/", &[SHOP]), [200; 3]);
    let refused = envoy.get("/", &[SHOP]);
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (429, None));
}
