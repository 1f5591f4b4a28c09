//! Callers have the limits of their plans, by what a verified token says, on real workers and under load.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::harness::{Client, Envoy, Gateway, NO_EXCUSE, hcm_filter, request};

/// The first part of all tokens, which the HMAC key of [`signed`] signs and which `test` has issued.
const HEAD: &str = "eyJhbGciOiJIUzI1NiJ9";

// The claims and signatures of some callers, by their plans.
const ANN: &str = "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYW5uIn0.u0or1jNa__xEtUuAPksgGYxRLMsJXEWNdW5Gf8RMY7o";
const ANN_GOLD: &str = "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYW5uIiwicGxhbiI6ImdvbGQifQ.XghMKhwdzZX_7VV2C0x03k3Eyt86WJPWQvfVNzjoLqs";
const ANN_SILVER: &str = "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYW5uIiwicGxhbiI6InNpbHZlciJ9.boSFKgf35r1WzZlJgMnEvLDL0OdUwaPHL91mFRWndgg";
const BOB_GOLD: &str = "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYm9iIiwicGxhbiI6ImdvbGQifQ.-9ZG2fp7H_rBctAhZv_fj6KrIc2sthZF8Egj9GGPqxk";
const CID_STAFF: &str = "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiY2lkIiwicGxhbiI6InN0YWZmIn0.Kv75g7DafQRsfojBz7Safd8S-_6qKlBG-gRpUSN2NDY";

/// Claims of any type that name no plan.
const ODD: [&str; 7] = [
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLW51bWJlciIsInBsYW4iOjV9.IpHPEZ47ckxNLevF6K6KeLKR6F-u5UQODIiPnU1MjSA",
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLXN3aXRjaCIsInBsYW4iOnRydWV9.sFUpIV9sdgfUfFtRxKaEy2P-v156qeTcOEsWsCdOX0s",
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLW51bGwiLCJwbGFuIjpudWxsfQ.bHNysF0CwOjeGwSnnE-n3QTzQx3RjuXwp5fvsXj2zxM",
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLWxpc3QiLCJwbGFuIjpbImdvbGQiXX0.37C33sNRNN0nLK-iVCWW076NXbzcRDKYUy58OQXzOMo",
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLW9iamVjdCIsInBsYW4iOnsiZ29sZCI6MX19.oD6YHjiaEu2YzcUi6-8xBEYMO1VvnAPiRfzbDy0Lro4",
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLXNwYWNlcyIsInBsYW4iOiIgZ29sZCJ9.HUPYneHggsqgbAw1qf6wo8KwUnGBLkSaTCKY4OiEyis",
    "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoib2RkLWxvbmciLCJwbGFuIjoiZ29sZGdvbGRnb2xkIn0.W_gVv7eYgcFyL2g7Q5fxeettDxcTgCHHbflscK4qvqs",
];

/// What tokens say of reports, and how many that is.
const REPORTS: [(&str, usize); 12] = [
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
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici0tMSIsInBsYW4iOiJzdGFmZiIsInJlcG9ydHMiOi0xfQ.AiBfNejV-dkxyJ6aQpfbYmWXnVFkU4ihmTn9MyWckJk",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici0yLjUiLCJwbGFuIjoic3RhZmYiLCJyZXBvcnRzIjoyLjV9.6tjumhuJAjCs39oknB5QqIhS-EIVwi5enp-_VDVfoKA",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici10ZXh0IiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6IjQwMCJ9.UEjUyQmZm7W57-zQHaeWo-GWinF0KiIfHqvVkn_EVuM",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici1wbGF0aW51bSIsInBsYW4iOiJzdGFmZiIsInJlcG9ydHMiOiJwbGF0aW51bSJ9.J2xxdBU9_O9CeuH1gDoAkkeD04HWYo5vdFM-slgO3Ro",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici10cnVlIiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6dHJ1ZX0.GaF7qoODDRvWUpPtclu8uyz4SyTAsVp5jIwzkpfOuxk",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici1udWxsIiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6bnVsbH0.L5ttS_Ttj7DKq01B22UKY44fY6em6UIlM6Fx51QtatM",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici1saXN0IiwicGxhbiI6InN0YWZmIiwicmVwb3J0cyI6WzQwMF19.V9mi495t_S6LK6KcydPomimJg1lu-GHlupQXF8XY1_E",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici1vYmplY3QiLCJwbGFuIjoic3RhZmYiLCJyZXBvcnRzIjp7ImEiOjQwMH19.JyvlIyVmMkZn7N0WzOUjJIvOYP0onPtxyidIQuGo-JU",
        5,
    ),
    (
        "eyJpc3MiOiJ0ZXN0Iiwic3ViIjoici1ub25lIiwicGxhbiI6InN0YWZmIn0.vZYwKtzkxSMNGz6cQ2fYG-gqFaeYd428qQgoubDg3eQ",
        5,
    ),
];

/// An Envoy in which jwt_authn verifies tokens in front of the example.
fn signed() -> Envoy {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/examples/plans.yaml");
    // No minute ends while an hour lasts.
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
        .workers(4)
        .behind(hcm_filter("envoy.filters.http.jwt_authn", "jwt_authn", "JwtAuthentication", jwt))
        .start()
}

fn by(path: &str, token: &str) -> Vec<u8> {
    request("GET", path, &[("authorization", &format!("Bearer {HEAD}.{token}"))])
}

/// How many of so many requests are let through that come by eight connections at once.
fn admitted(envoy: &Envoy, bytes: &[u8], of: usize) -> usize {
    let next = AtomicUsize::new(0);
    let send = || {
        let mut client = Client::connect(envoy.port).unwrap();
        let mut admitted = 0;
        while next.fetch_add(1, Ordering::Relaxed) < of {
            let status = client.send(bytes).unwrap().status;
            assert!([200, 503].contains(&status), "{status}");
            admitted += usize::from(status == 200);
        }
        admitted
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn the_example_gives_each_plan_its_own_numbers_and_keeps_what_was_used() {
    let envoy = signed();
    let told = |token: &str| {
        let answer = Client::connect(envoy.port).unwrap().send(&by("/", token)).unwrap();
        (answer.status, answer.header("ratelimit-policy").map(str::to_owned))
    };
    thread::scope(|scope| {
        let gold = scope.spawn(|| admitted(&envoy, &by("/", BOB_GOLD), 1100));
        let staff = scope.spawn(|| admitted(&envoy, &by("/", CID_STAFF), 1500));
        // A caller that has no plan, silver, gold, silver and none again.
        let moves = [
            (ANN, 10),
            (ANN_SILVER, 90),
            (ANN_GOLD, 900),
            (ANN_SILVER, 0),
            (ANN, 0),
            (ANN_GOLD, 0),
        ];
        for (token, left) in moves {
            let found = admitted(&envoy, &by("/", token), left + 30);
            assert!(found <= left, "{NO_EXCUSE}: {found} of {left}");
            assert_eq!(found, left);
        }
        assert_eq!(gold.join().unwrap(), 1000);
        assert_eq!(staff.join().unwrap(), 1500);
    });
    assert_eq!(told(BOB_GOLD), (503, Some(r#""requests";q=1000;w=3600"#.into())));
    assert_eq!(told(ANN), (503, Some(r#""requests";q=10;w=3600"#.into())));
    for token in ODD {
        assert_eq!(admitted(&envoy, &by("/", token), 20), 10, "{token}");
    }
    envoy.assert_unharmed();
}

#[test]
fn the_example_gives_as_many_reports_as_a_token_says_whatever_that_is() {
    let envoy = signed();
    for (token, most) in REPORTS {
        assert_eq!(admitted(&envoy, &by("/reports", token), most + 20), most, "{token}");
    }
    // Nobody can tell which of two tokens is meant, and a token that is forged is none.
    let twice = format!("Bearer {HEAD}.{CID_STAFF}");
    let both = [("authorization", twice.as_str()), ("authorization", twice.as_str())];
    assert_eq!(envoy.get("/reports", &both).status, 401);
    let forged = format!("Bearer {HEAD}.{}x", CID_STAFF);
    assert_eq!(envoy.get("/reports", &[("authorization", &forged)]).status, 401);
    envoy.assert_unharmed();
}
