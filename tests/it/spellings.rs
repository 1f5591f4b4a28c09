//! Repetitions, other spellings and other places of a value do not make a new caller.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use diana_policy::key::{Key, Seed};
use diana_policy::spelling::header::{LISTS, SINGLE};
use diana_policy::tree::Tree;
use diana_policy::{Actor, Condition, Field, IdentitySource, Test};
use diana_request::identity::caller::{Caller, Callers, Counted};
use diana_request::identity::sources::Sources;
use diana_request::matching::condition;
use kit::fake::FakeRequest;

const SEED: Seed = Seed { k0: 1, k1: 2 };

fn callers(sources: &[(&'static str, &str)]) -> (Callers, Option<usize>) {
    let source = |(kind, name): &(&'static str, &str)| IdentitySource {
        kind,
        value: if name.is_empty() { Tree::Null } else { Tree::Text((*name).into()) },
        options: match *kind {
            "jwt_claim" => vec![("unverified".into(), Tree::Bool(true))],
            _ => Vec::new(),
        },
    };
    let actor = Actor { name: "a".into(), sources: sources.iter().map(source).collect() };
    let mut callers = Callers::new(vec![Sources::new(&actor).unwrap()], SEED, false);
    let number = callers.register(&[0], Counted::Here);
    (callers, number)
}

fn of(sources: &[(&'static str, &str)], request: &FakeRequest) -> Caller {
    let (mut callers, number) = callers(sources);
    callers.of(number, request)
}

fn with(name: &str, value: &str) -> FakeRequest {
    FakeRequest::get("/").header(name, value)
}

#[test]
fn header_of_one_value_joined_is_shared() {
    assert!(SINGLE.is_sorted() && LISTS.is_sorted());
    for name in SINGLE {
        let caller = |value: &str| of(&[("header", name)], &with(name, value));
        assert!(matches!(caller("right"), Caller::Known { .. }), "{name}");
        for joined in
            ["right,1", "1,right", "right,", "right, 1", "\"1,right", "right,(1)", "(1,right"]
        {
            assert_eq!(caller(joined), Caller::Shared, "{name}: {joined}");
        }
    }
    // Quotes do not protect commas in credentials.
    let quoted = with("authorization", "Bearer \"a,b\"");
    assert_eq!(of(&[("header", "authorization")], &quoted), Caller::Shared);
    let accept = of(&[("header", "accept")], &with("accept", "a,b"));
    assert!(matches!(accept, Caller::Known { .. }));
}

#[test]
fn user_agent_with_commas_in_comments_is_a_caller() {
    for agent in [
        "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0",
        "App/1.0 (iPhone14,5; iOS 16.0)",
        "App/1 (a \\( b, c)",
    ] {
        let caller = |value: &str| of(&[("header", "user-agent")], &with("user-agent", value));
        assert!(matches!(caller(agent), Caller::Known { .. }), "{agent}");
        assert_eq!(caller(&format!("{agent},1")), Caller::Shared, "{agent}");
    }
}

#[test]
fn credentials_in_any_spelling_are_one_caller() {
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.x";
    for source in [("header", "authorization"), ("jwt_claim", "sub")] {
        let caller = |value: &str| of(&[source], &with("authorization", value));
        let plain = caller(&format!("Bearer {token}"));
        assert!(matches!(plain, Caller::Known { .. }));
        for odd in [
            "Bearer   ",
            "bearer ",
            "BEARER\t \t",
            " Bearer  ",
            "Bearer \"",
            "x Bearer ",
            "eyJh.eyJp.x500 Bearer ",
            "eyJh.eyJp.x500Bearer ",
            "Bearer\teyJh.eyJp.x Bearer ",
            "bearer Bearer ;;",
        ] {
            assert_eq!(caller(&format!("{odd}{token}")), plain, "{odd:?}");
        }
        assert_eq!(caller(&format!("Bearer {token},1")), Caller::Shared);
        assert_eq!(caller(&format!("1,Bearer {token}")), Caller::Shared);
    }
    let caller = |value: &str| of(&[("header", "authorization")], &with("authorization", value));
    assert_eq!(caller("BASIC   YTpi"), caller("Basic YTpi"));
    assert_ne!(caller("Basic YTpi"), caller("Basic ytpi"));
    assert!(matches!(caller("right"), Caller::Known { .. }));
}

/// Spellings that lenient readers accept as one token are one caller.
#[test]
fn json_web_token_in_any_spelling_is_one_caller() {
    const HEAD: &str = "eyJhbGciOiJSUzI1NiJ9";
    const ADA: &str = "eyJzdWIiOiJhZGEifQ";
    let tokens = [
        format!("{HEAD}.{ADA}.abc"),
        format!("{HEAD}.{ADA}.abc=="),
        format!("{HEAD}.{ADA}.abd"),
        format!("{HEAD}.{ADA}.a bc"),
        format!("{HEAD}.{ADA}.abc..."),
        format!("{HEAD}...{ADA}..abc"),
        format!("...{HEAD}.{ADA}.abc"),
        format!("n7JWT {HEAD}.{ADA}.abc"),
        format!("eyJ eyJa. eyJb.c {HEAD}.{ADA}.abc"),
    ];
    // Payloads that begin with a digit, a sign, a letter outside ASCII, a space or a line end.
    for payload in [
        "{\"2fa\":1}",
        "{\"-\":1}",
        "{\"é\":1}",
        "{ \"a\":1}",
        "{\n  \"a\":1}",
        "{\r\n\t\"a\":1}",
        "{\t\"a\":1}",
    ] {
        let payload = URL_SAFE_NO_PAD.encode(payload);
        let caller =
            |token: &str| hash(&[("header", "authorization")], &with("authorization", token));
        assert_eq!(
            caller(&format!("Bearer {HEAD}.{payload}.abc")),
            caller(&format!("Bearer {HEAD}..{payload}.x=")),
            "{payload}"
        );
    }
    let mut hashes = BTreeSet::new();
    for token in &tokens {
        let encoded = token.replace(' ', "%20").replace('=', "%3d");
        for (sources, request) in [
            (&[("header", "authorization")][..], with("authorization", &format!("Bearer {token}"))),
            (&[("header", "authorization")], with("authorization", token)),
            (&[("header", "authorization")], with("authorization", &format!("bearer \t{token}"))),
            (&[("header", "x-key")], with("x-key", token)),
            (&[("query", "key")], FakeRequest::get(&format!("/?key={encoded}"))),
            (&[("cookie", "key")], with("cookie", &format!("key=\"{token}\""))),
            (PLACES, with("x-key", &format!("Bearer {token}"))),
            (PLACES, FakeRequest::get(&format!("/?key={encoded}"))),
        ] {
            hashes.insert(hash(sources, &request));
        }
    }
    assert_eq!(hashes.len(), 1);
    let bob = format!("Bearer {HEAD}.eyJzdWIiOiJib2IifQ.abc");
    assert!(!hashes.contains(&hash(&[("header", "authorization")], &with("authorization", &bob))));
}

/// The hash of a known caller.
fn hash(sources: &[(&'static str, &str)], request: &FakeRequest) -> u64 {
    match of(sources, request) {
        Caller::Known { key, .. } => key.hash,
        other => panic!("{other:?} {request:?}"),
    }
}

#[test]
fn opaque_tokens_stay_apart() {
    let tokens = [
        "eyJhbGciOiJSUzI1NiJ9.aA",
        "eyJhbGciOiJSUzI1NiJ9.aB",
        "aa.bb.cA",
        "aa.bb.cB",
        "abcA",
        "abcB",
        "!abcB",
        "abc+B",
        "abcB=",
        "abc==",
        "eyJ.bb.c~A",
        "eyJ.bb.c~B",
        "eyJ..",
        "eyJ..=",
        "eyJ.a.=",
    ];
    let places: [(&str, &[(&str, &str)]); 3] = [
        ("authorization", &[("header", "authorization")]),
        ("x-key", &[("header", "x-key")]),
        ("x-key", PLACES),
    ];
    for (name, sources) in places {
        let hashes: BTreeSet<u64> = tokens
            .iter()
            .map(|token| hash(sources, &with(name, &format!("Bearer {token}"))))
            .collect();
        assert_eq!(hashes.len(), tokens.len(), "{name}");
    }
}

#[test]
fn basic_credentials_without_padding_are_one_caller() {
    let caller = |value: &str| hash(&[("header", "authorization")], &with("authorization", value));
    for (one, others) in [
        ("YWRhOnB3", ["YWRhOnB3=", "YWRhOnB3=="]),
        ("Ym9iYjpwdw==", ["Ym9iYjpwdw", "Ym9iYjpwdx="]),
        ("YTpwdzE=", ["YTpwdzE", "YTpwdzF="]),
    ] {
        for other in others {
            assert_eq!(
                caller(&format!("basic  {other}")),
                caller(&format!("Basic {one}")),
                "{other}"
            );
            let exact = |text: String| Test::Exact(text);
            let held =
                holds("authorization", exact(format!("Basic {one}")), &format!("Basic {other}"));
            assert_eq!(held, (true, false), "{other}");
        }
    }
    for sources in [PLACES, &PLACES[..1]] {
        let caller = |value: &str| hash(sources, &with("x-key", value));
        assert_eq!(caller("basic \t YTpwdzF="), caller("Basic YTpwdzE"));
    }
    assert_ne!(caller("Basic YWRhOnB3"), caller("Basic YWRhOnB4"));
    assert_ne!(caller("Basic a b="), caller("Basic a b"));
    assert_ne!(caller("Digest YWRhOnB3="), caller("Digest YWRhOnB3"));
}

#[test]
fn key_with_and_without_bearer_is_one_caller() {
    for name in ["authorization", "x-key"] {
        let caller = |value: &str| hash(&[("header", name)], &with(name, value));
        assert_eq!(caller("Bearer right"), caller("right"), "{name}");
        assert_ne!(caller("Bearer right"), caller("Basic right"), "{name}");
    }
    let caller = |sources, value| hash(sources, &with("authorization", value));
    let places = &[("header", "authorization"), ("query", "key")][..];
    assert_eq!(caller(places, "bearer right"), caller(&places[..1], "right"));
}

#[test]
fn named_credentials_in_any_spelling_are_one_caller() {
    let (mut callers, number) = callers(&[("header", "authorization")]);
    let caller = callers.of(number, &with("authorization", "Bearer abc"));
    for name in ["Bearer abc", "bearer   abc", " Bearer abc ", "abc"] {
        let named = callers.named(number, &[name.into()]);
        let [named] = named.as_slice() else { panic!("{named:?}") };
        assert_eq!(Caller::Known { key: named.key, percentile: 0 }, caller, "{name}");
    }
}

#[test]
fn empty_value_is_no_caller() {
    let requests = [
        with("x-key", ""),
        with("x-key", " \t"),
        with("x-key", "").header("x-key", " "),
        FakeRequest::get("/?key="),
        FakeRequest::get("/?key&key="),
        with("cookie", "key="),
        with("cookie", "key=\"\"; key="),
    ];
    for request in &requests {
        for sources in [PLACES, &PLACES[..1], &PLACES[1..2], &PLACES[2..]] {
            assert_eq!(of(sources, request), Caller::Absent, "{sources:?} {request:?}");
        }
    }
}

/// Whether a condition holds in `match`, and in `unless`.
fn holds(name: &str, test: Test, value: &str) -> (bool, bool) {
    let condition = Condition { field: Field::Header(name.into()), test };
    (
        condition::may_hold(&condition, &with(name, value)),
        condition::must_hold(&condition, &with(name, value)),
    )
}

#[test]
fn condition_on_a_list_takes_every_item() {
    let (prefix, suffix) = (Test::Prefix("gold".into()), Test::Suffix("gold".into()));
    for name in LISTS {
        for test in [&prefix, &suffix] {
            assert_eq!(holds(name, test.clone(), "gold"), (true, true), "{name}");
            assert_eq!(holds(name, test.clone(), "gold, gold,,gold"), (true, true), "{name}");
            for joined in ["gold,free", "free,gold", "gold\",free,\"", "gold (,free,)", "a (,gold"]
            {
                assert!(!holds(name, test.clone(), joined).1, "{name} {joined}");
            }
        }
        assert!(holds(name, prefix.clone(), "gold,free").0, "{name}");
    }
    assert_eq!(holds("x-app", prefix, "gold,free"), (true, true));
    assert_eq!(holds("accept", Test::Contains("gold".into()), "free, gold"), (true, true));
}

#[test]
fn condition_on_a_joined_header_takes_every_field() {
    let prefix = |text: &str| Test::Prefix(text.into());
    assert_eq!(holds("origin", prefix("https://a"), "https://a"), (true, true));
    assert_eq!(holds("origin", prefix("https://a"), "https://a,https://b"), (true, false));
    assert_eq!(holds("user-agent", prefix("probe"), "probe (x, y)"), (true, true));
    assert_eq!(holds("user-agent", prefix("probe"), "probe (x, y),z"), (true, false));
    let exact = |text: &str| Test::Exact(text.into());
    assert_eq!(holds("authorization", exact("Bearer a"), "Bearer   a"), (true, false));
    assert_eq!(holds("authorization", exact("Bearer a"), "bearer a"), (true, false));
    let not = Test::Not("Bearer a".into());
    assert_eq!(holds("authorization", not, "bearer  a"), (true, false));
}

const PLACES: &[(&str, &str)] = &[("header", "x-key"), ("query", "key"), ("cookie", "key")];

#[test]
fn key_in_several_places_is_one_caller() {
    for key in ["ada", "a+b/c==", "a%41", "a b", "%252B", "é"] {
        let encoded: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let requests = [
            with("x-key", key),
            FakeRequest::get(&format!("/?key={encoded}")),
            with("cookie", &format!("key={encoded}")),
            with("cookie", &format!("key=\"{encoded}\"")),
        ];
        let keys: BTreeSet<u64> = requests
            .iter()
            .map(|request| match of(PLACES, request) {
                Caller::Known { key, .. } => key.hash,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(keys.len(), 1, "{key}");
    }
    let places = [("header", "authorization"), ("query", "access_token")];
    for key in ["abc", "a b", "-abc", "~abc", "a Bearer b", "xBearer w", "bearer x", "Bearer y"] {
        let query = format!("/?access_token={}", key.replace(' ', "%20"));
        let query = of(&places, &FakeRequest::get(&query));
        for value in [key.to_owned(), format!("Bearer  {key}")] {
            assert_eq!(of(&places, &with("authorization", &value)), query, "{value}");
        }
    }
    let bearer = of(&places, &with("authorization", "Bearer  \"lead"));
    assert_eq!(bearer, of(&places, &FakeRequest::get("/?access_token=%20%22lead")));
    // Some readers decode cookies, some do not.
    let raw = of(PLACES, &with("cookie", "key=x%2541"));
    assert_eq!(raw, of(PLACES, &with("x-key", "x%2541")));
}

#[test]
fn key_under_a_name_that_readers_differ_about_is_shared() {
    let places = [("query", "key"), ("cookie", "key"), ("header", "x-key")];
    for query in
        ["+key", "%20+%6bey", "%6bey", "a=b;+key", "key%00", "key%00x", "key[]", "key%5B0%5D"]
    {
        let request = FakeRequest::get(&format!("/?{query}=1")).header("x-key", "ada");
        assert_eq!(of(&places, &request), Caller::Shared, "{query}");
        assert_eq!(of(&places[..1], &request), Caller::Shared, "{query}");
        let empty = FakeRequest::get(&format!("/?{query}="));
        assert_eq!(of(&places, &empty), Caller::Absent, "{query}");
    }
    for name in ["%6bey", "key ", "key\t", "\tkey", " key", "key[]", "key%00"] {
        let request = with("cookie", &format!("a; {name}=1")).header("x-key", "ada");
        assert_eq!(of(&places, &request), Caller::Shared, "{name}");
    }
    let caller = |query: &str| of(&[("query", "key")], &FakeRequest::get(query));
    assert_eq!(caller("/?key=1&+key=ada"), Caller::Shared);
    assert_eq!(caller("/?key+=ada&keys=ada&[key]=ada"), Caller::Absent);
    let caller = |name, query| of(&[("query", name)], &FakeRequest::get(query));
    assert_eq!(caller("a%20b", "/?a%2520b=ada"), Caller::Shared);
    for query in ["/?user[id]=ada", "/?user%5Bid%5D=ada"] {
        assert_eq!(caller("user[id]", query), caller("key", "/?key=ada"), "{query}");
    }
}

#[test]
fn key_never_collides_with_an_address() {
    let places = [("client_address", ""), ("header", "x-key"), ("query", "key")];
    let address = of(&places, &FakeRequest::get("/").from("97.98.99.100:1"));
    let key = of(&places, &with("x-key", "abcd"));
    assert_ne!(address, key);
    assert_eq!(key, of(&places, &FakeRequest::get("/?key=abcd")));
}

#[test]
fn caller_of_a_single_source_keeps_its_key() {
    for (source, number, request) in [
        (&[("header", "x-key")][..], 0, with("x-key", "ada")),
        (&[("header", "authorization")], 0, with("authorization", "ada")),
        (&[("client_address", ""), ("query", "key")], 1, FakeRequest::get("/?key=ada")),
    ] {
        let key = Key::of(&SEED, number, b"ada");
        assert_eq!(of(source, &request), Caller::Known { key, percentile: 0 }, "{source:?}");
    }
}

#[test]
fn named_caller_of_several_places_is_found_once() {
    let (mut callers, number) = callers(PLACES);
    let named = callers.named(number, &[b"a+b".to_vec()]);
    let [named] = named.as_slice() else { panic!("{named:?}") };
    assert_eq!(named.sources, ["header"]);
    let known = Caller::Known { key: named.key, percentile: 0 };
    assert_eq!(callers.of(number, &FakeRequest::get("/?key=a%2Bb")), known);
}
