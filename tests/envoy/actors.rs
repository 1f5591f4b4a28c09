//! Recognition of callers: each source, requests without a caller, and compound keys.

use serde_json::json;

use crate::harness::{Envoy, Gateway, hcm_filter};

/// Two requests an hour for each caller of this actor.
fn rules(actor: &str, sources: &str) -> String {
    format!(
        "
limits: [{{Url: /, rules: [{{name: only, actor: {actor}, unit: hour, rpu: 2, scope: local}}]}}]
actors: {{{sources}}}
"
    )
}

/// Fails unless each caller has a separate state.
#[track_caller]
fn assert_apart(envoy: &Envoy, callers: &[(&str, &[(&str, &str)])]) {
    for (path, headers) in callers {
        assert_eq!(envoy.statuses(3, path, headers), [200, 200, 503], "{path} {headers:?}");
    }
}

/// Fails unless these requests are unlimited.
#[track_caller]
fn assert_free(envoy: &Envoy, path: &str, headers: &[(&str, &str)]) {
    assert_eq!(envoy.statuses(4, path, headers), [200; 4], "{path} {headers:?}");
}

/// Tokens of ada and bob, issued by `test` and signed with the HMAC key of `verified_token`.
const SIGNED: [&str; 2] = [
    "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYWRhIn0.LH4SKo9QkRoEJIRuWp53-XoFrAB_vSzx_bCxYsdA_Gw",
    "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYm9iIn0.rM1eA0gGxa-EBsz_lGHqvTrQ71tveyuOfiv2bY9IdJI",
];

/// A gateway behind `jwt_authn`, with an actor of this source.
fn behind_jwt_authn(source: &str) -> Envoy {
    let keys = r#"{"keys":[{"kty":"oct","alg":"HS256","k":"ZGlhbmEgdGVzdHMgd2l0aCB0aGlzIGtleSwgMzIgYnl0ZXM"}]}"#;
    let provider = json!({
        "issuer": "test",
        "local_jwks": {"inline_string": keys},
        "payload_in_metadata": "claims",
        "forward_payload_header": "x-claims",
    });
    let jwt = json!({
        "providers": {"test": provider},
        "rules": [{"match": {"prefix": "/"}, "requires": {"requires_any": {"requirements": [
            {"provider_name": "test"}, {"allow_missing": {}},
        ]}}}],
    });
    Gateway::with(&rules("person", &format!("person: [{source}]")))
        .behind(hcm_filter("envoy.filters.http.jwt_authn", "jwt_authn", "JwtAuthentication", jwt))
        .start_shared()
}

#[test]
fn verified_token_in_metadata_is_a_caller() {
    assert_verified(&behind_jwt_authn("{jwt_claim: sub, payload: claims}"));
}

#[test]
fn verified_token_in_a_header_is_a_caller() {
    let envoy = behind_jwt_authn("{jwt_claim: sub, payload_header: x-claims}");
    assert_verified(&envoy);
    // `jwt_authn` removes the header of a client, with and without a token.
    let forged = "eyJzdWIiOiJtYWxsb3J5In0";
    assert_free(&envoy, "/", &[("x-claims", forged)]);
    let ada = format!("Bearer {}", SIGNED[0]);
    let refused = envoy.get("/", &[("authorization", &ada), ("x-claims", forged)]);
    assert_eq!(refused.status, 503, "the claim of a client has counted");
}

/// Fails unless the callers of both tokens are counted apart, and requests without one are not counted.
#[track_caller]
fn assert_verified(envoy: &Envoy) {
    let [ada, bob] = SIGNED.map(|token| format!("Bearer {token}"));
    assert_apart(envoy, &[("/", &[("authorization", &ada)]), ("/", &[("authorization", &bob)])]);
    assert_free(envoy, "/", &[]);
}

#[test]
fn metadata_is_a_caller() {
    let rule = json!({
        "header": "x-plan",
        "on_header_present": {"metadata_namespace": "shop.caller", "key": "plan"},
    });
    let config = json!({"request_rules": [rule]});
    let sources = "plan: [{metadata: [shop.caller, plan]}]";
    let envoy = Gateway::with(&rules("plan", sources))
        .behind(hcm_filter(
            "envoy.filters.http.header_to_metadata",
            "header_to_metadata",
            "Config",
            config,
        ))
        .start_shared();
    assert_apart(&envoy, &[("/", &[("x-plan", "free")]), ("/", &[("x-plan", "paid")])]);
    assert_free(&envoy, "/", &[]);
}

#[test]
fn device_falls_back_to_its_address() {
    let envoy = Gateway::with(&rules("device", "")).trust_forwarded_for().start_shared();
    assert_apart(
        &envoy,
        &[
            ("/", &[("x-device-id", "1"), ("x-forwarded-for", "192.0.2.1")]),
            ("/", &[("x-device-id", "2"), ("x-forwarded-for", "192.0.2.1")]),
            ("/", &[("x-forwarded-for", "192.0.2.1")]),
            ("/", &[("x-forwarded-for", "192.0.2.2")]),
            ("/", &[("x-forwarded-for", "2001:db8::1")]),
            ("/", &[("x-forwarded-for", "2001:db8:0:1::1")]),
        ],
    );
    // The same network of 64 bits, and the same address written as IPv6.
    for same in ["2001:db8::2", "::ffff:192.0.2.1"] {
        assert_eq!(envoy.get("/", &[("x-forwarded-for", same)]).status, 503, "{same}");
    }
}
