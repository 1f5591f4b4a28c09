//! Plans that a verified token names.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::harness::{Envoy, Gateway, hcm_filter};

/// The first part of all tokens. The HMAC key of [`start`] signs them, and their issuer is `test`.
const HEAD: &str = "eyJhbGciOiJIUzI1NiJ9";

/// One caller without a plan, with the plan silver, and with the plan gold.
const FREE: &str =
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYW5uIn0.u0or1jNa__xEtUuAPksgGYxRLMsJXEWNdW5Gf8RMY7o";
const SILVER: &str = "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYW5uIiwicGxhbiI6InNpbHZlciJ9.boSFKgf35r1WzZlJgMnEvLDL0OdUwaPHL91mFRWndgg";
const GOLD: &str = "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYW5uIiwicGxhbiI6ImdvbGQifQ.XghMKhwdzZX_7VV2C0x03k3Eyt86WJPWQvfVNzjoLqs";

/// A plan that is a number, and one that is a list: neither names a plan.
const INVALID_PLANS: [&str; 2] = [
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLW51bWJlciIsInBsYW4iOjV9.IpHPEZ47ckxNLevF6K6KeLKR6F-u5UQODIiPnU1MjSA",
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLWxpc3QiLCJwbGFuIjpbImdvbGQiXX0.37C33sNRNN0nLK-iVCWW076NXbzcRDKYUy58OQXzOMo",
];

/// Tokens with the claim `reports`: 7, 0, 1e9, a text, a list, and none; and the reports that they
/// allow.
const REPORTS: [(&str, usize); 6] = [
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici03IiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6N30.2iiaehKHxck_o_A6_ryvNNL5DdGVPV-pUy1LbEaVNhw",
        7,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici0wIiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6MH0.EPKowBVR5jVOoJjEpHKDvzVr0yL6pTPA1j7Iivz3PAw",
        0,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici0xZTkiLCJwbGFuIjoic3RhZmYiLCJyZXBvcnRzIjoxMDAwMDAwMDAwLjB9.1GooqRKT53yz9eidVqTzEFLN241hfYq9C-kQTIkWPB0",
        500,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici10ZXh0IiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6IjQwMCJ9.UEjUyQmZm7W57-zQHaeWo-GWinF0KiIfHqvVkn_EVuM",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici1saXN0IiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6WzQwMF19.V9mi495t_S6LK6KcydPomimJg1lu-GHlupQXF8XY1_E",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici1ub25lIiwicGxhbiI6InN0YWZmIn0.vZYwKtzkxSMNGz6cQ2fYG-gqFaeYd428qQgoubDg3eQ",
        5,
    ),
];

/// Starts the example after `jwt_authn`, which verifies tokens.
fn start() -> Envoy {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/examples/plans.yaml");
    // An hour does not end during a test.
    let rules = fs::read_to_string(path).unwrap().replace("unit: minute", "unit: hour");
    let keys = r#"{"keys":[{"kty":"oct","alg":"HS256","k":"ZGlhbmEgdGVzdHMgd2l0aCB0aGlzIGtleSwgMzIgYnl0ZXM"}]}"#;
    let jwt = json!({
        "providers": {"accounts": {
            "issuer": "test",
            "local_jwks": {"inline_string": keys},
            "payload_in_metadata": "claims",
        }},
        "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": "accounts"}}],
    });
    Gateway::with(&rules)
        .workers(2)
        .behind(hcm_filter("envoy.filters.http.jwt_authn", "jwt_authn", "JwtAuthentication", jwt))
        .start_shared()
}

/// Sends `count` requests with a token. Returns the number of admitted ones.
fn admitted(envoy: &Envoy, path: &str, token: &str, count: usize) -> usize {
    let bearer = format!("Bearer {HEAD}.{token}");
    let statuses = envoy.statuses(count, path, &[("authorization", &bearer)]);
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 200).count()
}

#[test]
fn each_plan_has_its_limit_and_usage_is_kept() {
    let envoy = start();
    for (token, left) in [(FREE, 10), (SILVER, 90), (FREE, 0), (SILVER, 0)] {
        assert_eq!(admitted(&envoy, "/", token, left + 20), left, "{token}");
    }
    assert_eq!(admitted(&envoy, "/", GOLD, 50), 50);
    for token in INVALID_PLANS {
        assert_eq!(admitted(&envoy, "/", token, 20), 10, "{token}");
    }
    envoy.assert_unharmed();
}

#[test]
fn claim_sets_the_limit() {
    let envoy = start();
    for (token, limit) in REPORTS {
        let count = limit + 20;
        assert_eq!(admitted(&envoy, "/reports", token, count), limit, "{token}");
    }
    let forged = format!("Bearer {HEAD}.{FREE}x");
    assert_eq!(envoy.get("/reports", &[("authorization", &forged)]).status, 401);
    envoy.assert_unharmed();
}
