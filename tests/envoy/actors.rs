//! How a caller is recognised: each source, what happens without it, and compound keys.

use serde_json::json;

use crate::harness::{Envoy, Gateway, exchange, hcm_filter, request};

/// Two requests an hour for each caller of this kind.
fn rules(actor: &str, sources: &str) -> String {
    format!(
        "
limits: [{{Url: /, rules: [{{name: only, actor: {actor}, unit: hour, rpu: 2, scope: local}}]}}]
actors: {{{sources}}}
"
    )
}

/// Fails unless each caller has a bucket of its own.
#[track_caller]
fn assert_apart(envoy: &Envoy, callers: &[(&str, &[(&str, &str)])]) {
    for (path, headers) in callers {
        assert_eq!(envoy.statuses(3, path, headers), [200, 200, 503], "{path} {headers:?}");
    }
}

/// Fails unless these requests are not limited at all.
#[track_caller]
fn assert_free(envoy: &Envoy, path: &str, headers: &[(&str, &str)]) {
    assert_eq!(envoy.statuses(4, path, headers), [200; 4], "{path} {headers:?}");
}

#[test]
fn header() {
    let envoy = Gateway::with(&rules("account", "")).start_shared();
    assert_apart(&envoy, &[("/", &[("x-account-id", "ada")]), ("/", &[("x-account-id", "Ada")])]);
    assert_free(&envoy, "/", &[]);
    assert_free(&envoy, "/", &[("x-account-id", "")]);
}

#[test]
fn seed_name_of_account() {
    let envoy = Gateway::with(&rules("actor", "")).start_shared();
    assert_apart(&envoy, &[("/", &[("x-account-id", "ada")])]);
}

#[test]
fn cookie() {
    let envoy = Gateway::with(&rules("session", "session: [{cookie: sid}]")).start_shared();
    assert_apart(
        &envoy,
        &[
            ("/", &[("cookie", "sid=1")]),
            ("/", &[("cookie", "theme=dark; sid=2; lang=en")]),
            ("/", &[("cookie", "theme=dark"), ("cookie", "sid=3")]),
        ],
    );
    assert_free(&envoy, "/", &[("cookie", "xsid=1; sidx=1; theme=sid=1")]);
}

#[test]
fn query() {
    let envoy = Gateway::with(&rules("key", "key: [{query: api_key}]")).start_shared();
    assert_apart(&envoy, &[("/a?api_key=1", &[]), ("/b?x=1&api_key=2&y", &[])]);
    assert_free(&envoy, "/?api_keys=1&xapi_key=1", &[]);
}

#[test]
fn unverified_token() {
    let sources = "person: [{jwt_claim: sub, unverified: true}]";
    let envoy = Gateway::with(&rules("person", sources)).start_shared();
    // {"alg":"none"} . {"sub":"ada"} and {"sub":"bob"}
    let ada = "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.";
    let bob = "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJib2IifQ.";
    assert_apart(&envoy, &[("/", &[("authorization", ada)]), ("/", &[("authorization", bob)])]);
    for useless in ["Bearer x.y.z", "Basic YWRhOmFkYQ==", "Bearer", "Bearer eyJzdWIiOjF9"] {
        assert_free(&envoy, "/", &[("authorization", useless)]);
    }
}

/// Tokens of ada and bob, issued by `test` and signed with the HMAC key of `verified_token`.
const SIGNED: [&str; 2] = [
    "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYWRhIn0.LH4SKo9QkRoEJIRuWp53-XoFrAB_vSzx_bCxYsdA_Gw",
    "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYm9iIn0.rM1eA0gGxa-EBsz_lGHqvTrQ71tveyuOfiv2bY9IdJI",
];

#[test]
fn verified_token() {
    let keys = r#"{"keys":[{"kty":"oct","alg":"HS256","k":"ZGlhbmEgdGVzdHMgd2l0aCB0aGlzIGtleSwgMzIgYnl0ZXM"}]}"#;
    let provider = json!({
        "issuer": "test",
        "local_jwks": {"inline_string": keys},
        "payload_in_metadata": "claims",
    });
    let jwt = json!({
        "providers": {"test": provider},
        "rules": [{"match": {"prefix": "/"}, "requires": {"requires_any": {"requirements": [
            {"provider_name": "test"}, {"allow_missing": {}},
        ]}}}],
    });
    let sources = "person: [{jwt_claim: sub, payload: claims}]";
    let envoy = Gateway::with(&rules("person", sources))
        .behind(hcm_filter("envoy.filters.http.jwt_authn", "jwt_authn", "JwtAuthentication", jwt))
        .start_shared();
    let [ada, bob] = SIGNED.map(|token| format!("Bearer {token}"));
    assert_apart(&envoy, &[("/", &[("authorization", &ada)]), ("/", &[("authorization", &bob)])]);
    assert_free(&envoy, "/", &[]);
}

#[test]
fn metadata() {
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
fn device_or_else_its_address() {
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

#[test]
fn networks() {
    let sources = "net: [{client_address: {v4: 24, v6: 48}}]";
    let envoy = Gateway::with(&rules("net", sources)).trust_forwarded_for().start_shared();
    let statuses = ["192.0.2.1", "192.0.2.200", "192.0.2.77", "192.0.3.1"]
        .map(|address| envoy.get("/", &[("x-forwarded-for", address)]).status);
    assert_eq!(statuses, [200, 200, 503, 200]);
}

#[test]
fn absent_callers_are_skipped_or_share_or_are_denied() {
    let rule = |url: &str, absent: &str| {
        format!(
            "{{Url: {url}, rules: [{{actor: account, unit: hour, rpu: 2, scope: local, absent: {absent}}}]}}"
        )
    };
    let [skip, share, deny] = [("/skip", "skip"), ("/share", "share"), ("/deny", "deny")]
        .map(|(url, how)| rule(url, how));
    let envoy = Gateway::with(&format!("limits: [{skip}, {share}, {deny}]")).start_shared();
    assert_free(&envoy, "/skip", &[]);
    assert_eq!(envoy.statuses(3, "/share", &[]), [200, 200, 503]);
    assert_eq!(envoy.statuses(2, "/deny", &[]), [503, 503]);
    for path in ["/skip", "/share", "/deny"] {
        assert_eq!(envoy.statuses(3, path, &[("x-account-id", "ada")]), [200, 200, 503], "{path}");
    }
}

#[test]
fn compound_keys() {
    let envoy = Gateway::with(&rules("[account, device]", "device: [{header: x-device-id}]"))
        .start_shared();
    assert_apart(
        &envoy,
        &[
            ("/", &[("x-account-id", "ada"), ("x-device-id", "1")]),
            ("/", &[("x-account-id", "ada"), ("x-device-id", "2")]),
            ("/", &[("x-account-id", "bob"), ("x-device-id", "1")]),
            // Parts must not run into each other.
            ("/", &[("x-account-id", "ad"), ("x-device-id", "a1")]),
        ],
    );
    assert_free(&envoy, "/", &[("x-account-id", "ada")]);
    assert_free(&envoy, "/", &[("x-device-id", "1")]);
}

#[test]
fn a_key_header_that_repeats_mints_no_keys() {
    let envoy = Gateway::with(&rules("account", "")).start_shared();
    let statuses: Vec<u16> = (0..4)
        .map(|number| {
            let twice = [("x-account-id", "ada"), ("x-account-id", &*format!("fresh-{number}"))];
            exchange(envoy.port, &request("GET", "/", &twice)).unwrap().status
        })
        .collect();
    assert_eq!(statuses, [200, 200, 503, 503]);
    assert_apart(&envoy, &[("/", &[("x-account-id", "ada")])]);
}
