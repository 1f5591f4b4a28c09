//! Every source of identity, and the requests that belong to one caller. A repeated value, another
//! spelling or another position makes no new caller.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diana_policy::key::{Key, Seed};
use diana_policy::spelling::header::{LISTS, SINGLE};
use diana_policy::{Actor, Policy};
use diana_request::identity::caller::{Caller, Callers, CountScope};
use diana_request::identity::sources::Sources;
use diana_request::identity::{Source, SourceValue};
use kit::fake::FakeRequest;
use std::rc::Rc;

use crate::config::policy;
use crate::request::conditions::Closed;
use crate::support::documents::{assert_outcomes, outcome};
use crate::support::steps;

const SEED: Seed = Seed { k0: 1, k1: 2 };

/// A document has actors and requests. With several actors, `by` is the actor of a request. Each
/// transcript numbers the callers, and shows the value if the actor has one source.
#[test]
fn callers_match_their_transcripts() {
    assert_outcomes(concat!(env!("CARGO_MANIFEST_DIR"), "/it/request/identity"), |_, _, text| {
        let (actors, steps) = steps::split(text);
        let policy = policy(&format!("limits: []\nactors: {actors}"));
        let mut known: Vec<Key> = Vec::new();
        let mut transcript = String::new();
        for (line, mut keys) in steps {
            let name = keys.remove("by").map_or("it".into(), |name| steps::text(&name));
            let (actor, request) = (actor(&policy, &name), steps::request(&keys));
            let caller = match caller(actor, &request) {
                Caller::Known { key, .. } => {
                    let number = known.iter().position(|other| *other == key);
                    let number = number.unwrap_or_else(|| {
                        known.push(key);
                        known.len() - 1
                    });
                    format!("caller {}", number + 1)
                }
                Caller::Shared(Key::SHARED) => "shared".into(),
                Caller::Shared(_) => "without address".into(),
                Caller::Absent => "absent".into(),
            };
            let found = match &actor.sources[..] {
                [_] => found(&*source(actor), &request),
                _ => String::new(),
            };
            transcript += &outcome(line, format!("{caller} {found}").trim_end());
        }
        transcript
    });
}

fn actor<'p>(policy: &'p Policy, name: &str) -> &'p Actor {
    policy.actors.iter().find(|actor| actor.name == name).unwrap()
}

/// The only source of an actor.
fn source(actor: &Actor) -> Rc<dyn Source> {
    let [own] = &actor.sources[..] else { panic!("{actor:?}") };
    diana_request::identity::build(own).unwrap()
}

fn found(source: &dyn Source, request: &FakeRequest) -> String {
    match source.find(request) {
        SourceValue::Value(value) => value.to_vec().escape_ascii().to_string(),
        SourceValue::Absent => "absent".into(),
        SourceValue::NoMetadata => "no metadata".into(),
        SourceValue::NoAddress => "no address".into(),
        SourceValue::Unclear => "unclear".into(),
    }
}

fn callers(actor: &Actor) -> (Callers, Option<usize>) {
    let mut callers = Callers::new(vec![Sources::new(actor).unwrap()], SEED, false);
    let number = callers.register(&[0], CountScope::Here);
    (callers, number)
}

fn caller(actor: &Actor, request: &FakeRequest) -> Caller {
    let (mut callers, number) = callers(actor);
    callers.of(number, request)
}

/// An actor with these sources.
fn with(sources: &str) -> Policy {
    policy(&format!("limits: []\nactors: {{it: [{sources}]}}"))
}

/// The value of a source in a request.
fn finds(own: &str, request: &FakeRequest) -> String {
    found(&*source(actor(&with(own), "it")), request)
}

#[test]
fn header_of_one_value_joined_is_shared() {
    assert!(SINGLE.is_sorted() && LISTS.is_sorted());
    for name in SINGLE {
        let policy = with(&format!("{{header: {name}}}"));
        let caller =
            |value| caller(actor(&policy, "it"), &FakeRequest::get("/").header(name, value));
        assert!(matches!(caller("right"), Caller::Known { .. }), "{name}");
        for joined in
            ["right,1", "1,right", "right,", "right, 1", "\"1,right", "right,(1)", "(1,right"]
        {
            assert_eq!(caller(joined), Caller::Shared(Key::SHARED), "{name}: {joined}");
        }
    }
}

#[test]
fn odd_bytes_and_long_texts_are_read() {
    let raw = FakeRequest::get("/").header("x-account-id", b"\xff\xfe");
    assert_eq!(finds("{header: x-account-id}", &raw), r"\xff\xfe");
    let many = FakeRequest::get("/").header("cookie", "a=b; ".repeat(10_000) + "sid=found");
    assert_eq!(finds("{cookie: sid}", &many), "found");
    let peer = "{peer: uri_san}";
    assert_eq!(finds(peer, &FakeRequest::get("/")), "absent");
    let there = ["connection", "uri_san_peer_certificate"];
    assert_eq!(
        finds(peer, &FakeRequest::get("/").property(&there, "spiffe://a/b")),
        "spiffe://a/b"
    );
}

#[test]
fn claims_of_an_unverified_token_are_bounded() {
    /// Most bytes of claims that are read.
    const LONGEST: usize = 12_288;
    let own = "{jwt_claim: sub, unverified: true}";
    let policy = with(own);
    let source = source(actor(&policy, "it"));
    assert!(source.warning().is_some());
    let claims = r#"{"sub":"bob","p":""}"#;
    let padded = |bytes: usize| {
        claims.replace("\"\"}", &format!("\"{}\"}}", "x".repeat(bytes - claims.len())))
    };
    for (claims, wanted) in [
        (padded(LONGEST), "bob"),
        (padded(LONGEST + 1), "unclear"),
        ("[".repeat(100_000), "unclear"),
        (format!("{{\"sub\":\"bob\",\"p\":[{}1]}}", "1,".repeat(9_000)), "unclear"),
        (format!("{{\"p\":\"{}\"}}", "x".repeat(LONGEST)), "unclear"),
    ] {
        let token = format!("Bearer e30.{}.sig", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(finds(own, &FakeRequest::get("/").header("authorization", token)), wanted);
    }
}

/// Programs that decode base64 leniently read a token whose header is long, has other characters or
/// unused bits at its end. So such a token has a claim, even if its payload cannot be read.
#[test]
fn unreadable_payloads_behind_any_header_are_unclear() {
    let long = URL_SAFE_NO_PAD.encode(format!("{{\"x5c\":\"{}\"}}", "x".repeat(20_000)));
    let headers = ["e30", "e30=", "e31", "e30A1", "eyJraWQiOiL/Ij4ifQ", "e 30", "CiB7fQ", &long];
    let mapping = URL_SAFE_NO_PAD.encode(r#"{"sub":{"a":1}}"#);
    let payloads = [mapping.as_str(), "eyJzdWIiOiJhZGEifR", &"x".repeat(17_000)];
    let own = "{jwt_claim: sub, unverified: true}";
    for header in headers {
        for payload in payloads {
            let token = format!("Bearer {header}.{payload}.sig");
            let request = FakeRequest::get("/").header("authorization", &token);
            assert_eq!(finds(own, &request), "unclear", "{token}");
        }
    }
    for text in ["a.b.c", "W10.x.c", "ZTMw.x.c", ".x.c", "=.x.c"] {
        let request = FakeRequest::get("/").header("authorization", format!("Bearer {text}"));
        assert_eq!(finds(own, &request), "absent", "{text}");
    }
}

/// A header that the host does not give to the module may have any value.
#[test]
fn unreadable_headers_are_one_caller() {
    for own in [
        "{header: x-key}",
        "{header: authorization}",
        "{cookie: sid}",
        "{jwt_claim: sub, unverified: true}",
    ] {
        let policy = with(&format!("{own}, {{client_address: {{}}}}"));
        let (mut callers, number) = callers(actor(&policy, "it"));
        assert_eq!(callers.of(number, &Closed), Caller::Shared(Key::SHARED), "{own}");
    }
}

/// Requests without an address are one caller, apart from all others, under each rule and in every
/// place of its actor. A shared caller is never banned.
#[test]
fn clients_without_an_address_are_one_caller() {
    let policy = policy(
        "limits: []
actors: {ip: [{client_address: {}}], key: [{header: x-key}], wide: [{client_address: {v4: 0, v6: 0}}]}",
    );
    let all = ["ip", "key", "wide"].map(|name| Sources::new(actor(&policy, name)).unwrap());
    let mut callers = Callers::new(all.into(), SEED, true);
    let request = |key: &str| match key {
        "" => FakeRequest::get("/"),
        key => FakeRequest::get("/").header("x-key", key),
    };
    for scope in [CountScope::Here, CountScope::InFleet] {
        let mut of = |actor: &[usize], request: &FakeRequest| {
            let number = callers.register(actor, scope);
            callers.begin();
            callers.of(number, request)
        };
        let key = |caller| match caller {
            Caller::Shared(key) | Caller::Known { key, .. } => key,
            Caller::Absent => panic!("absent"),
        };
        let alone = of(&[0], &request(""));
        for address in ["/run/a.sock", "@abstract", "envoy://internal/x", "10.0.0.0/8", "a:1", ""] {
            assert_eq!(of(&[0], &request("a").from(address)), alone, "{address}");
        }
        assert!(matches!(alone, Caller::Shared(key) if key != Key::SHARED), "{alone:?}");
        for known in ["0.0.0.0:0", "[::]:0", "127.0.0.1:1"] {
            let known = request("").from(known);
            assert!(matches!(of(&[0], &known), Caller::Known { .. }));
            assert_ne!(key(of(&[0], &known)), key(alone));
            assert_ne!(key(of(&[2], &known)), key(of(&[2], &request(""))), "the widest network");
        }
        let [a, b] = ["a", "b"].map(|key| of(&[1, 0], &request(key)));
        assert!(matches!((a, b), (Caller::Shared(a), Caller::Shared(b)) if a != b), "{a:?} {b:?}");
        assert_eq!(of(&[1, 0], &request("")), Caller::Absent);
        // An actor with the address in front is in the shard of the address.
        let behind = key(of(&[0, 1], &request("a")));
        let is_beside = behind.shard_selector() == key(alone).shard_selector();
        assert_eq!(is_beside, scope == CountScope::InFleet);
    }
}

/// The properties of a source: whether callers choose the value, and the header that contains only
/// the value.
#[test]
fn source_reports_whether_callers_choose_its_value() {
    for (own, is_chosen, header) in [
        ("{header: X-Account}", true, Some("x-account")),
        ("{cookie: sid}", true, None),
        ("{query: token}", true, None),
        ("{jwt_claim: sub, unverified: true}", true, None),
        ("{jwt_claim: sub, payload: p}", false, None),
        ("{metadata: [space, name]}", false, None),
        ("{peer: sha256}", false, None),
        ("{client_address: {}}", false, None),
    ] {
        let source = source(actor(&with(own), "it"));
        assert_eq!((source.is_caller_chosen(), source.header()), (is_chosen, header), "{own}");
    }
}

/// Callers that Redis counts keep their states under a new version.
#[test]
fn caller_of_a_single_source_keeps_its_key() {
    let header = |name: &str| FakeRequest::get("/").header(name, "ada");
    for (sources, number, request) in [
        ("{header: x-key}", 0, header("x-key")),
        ("{header: authorization}", 0, header("authorization")),
        ("{metadata: [a, b]}, {query: key}", 1, FakeRequest::get("/?key=ada")),
    ] {
        let key = Key::of(&SEED, number, b"ada");
        let known = Caller::Known { key, percentile: 0 };
        assert_eq!(caller(actor(&with(sources), "it"), &request), known, "{sources}");
    }
}

#[test]
fn named_caller_is_found_once_in_any_spelling() {
    for (sources, names, request) in [
        (
            "{header: authorization}",
            &["Bearer abc", "bearer   abc", " Bearer abc ", "abc"][..],
            FakeRequest::get("/").header("authorization", "Bearer abc"),
        ),
        ("{header: x-key}, {query: key}, {cookie: key}", &["a+b"], FakeRequest::get("/?key=a%2Bb")),
    ] {
        let policy = with(sources);
        let (mut callers, number) = callers(actor(&policy, "it"));
        let caller = callers.of(number, &request);
        for name in names {
            let named = callers.named(number, &[name.as_bytes().to_vec()]);
            let [named] = named.as_slice() else { panic!("{named:?}") };
            assert_eq!(named.sources, ["header"]);
            assert_eq!(Caller::Known { key: named.key, percentile: 0 }, caller, "{name}");
        }
    }
}
