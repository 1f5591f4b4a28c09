//! A condition on presence and an actor with the same source agree on whether a request has a
//! value. Requests with a value that cannot be read share a caller. Rules for requests with a value and
//! those for requests without one both cover them.

use diana_policy::port::Property;
use diana_policy::tree::Tree;
use diana_policy::{Condition, ConditionField, Test};
use diana_request::identity::{REGISTRY, SourceValue};
use diana_request::matching::condition;
use fastrand::Rng;
use kit::fake::FakeRequest;

const PATH: [&str; 4] = ["metadata", "filter_metadata", "space", "k"];

/// The result of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Absent,
    Unclear,
    Value,
}

use Found::{Absent, Unclear, Value};

/// Values of metadata in Envoy's encoding, and the result of a source. `null`, which has no encoding,
/// is like an absent value.
const FORMS: &[(&[u8], Found)] = &[
    (b"", Absent),
    (b"gold", Value),
    // `false`, `true`
    (b"\0", Value),
    (b"\x01", Value),
    // `0`, `5`
    (&[0; 8], Value),
    (&5_f64.to_le_bytes(), Value),
    // `[]` and `{}`, `[""]`, `{"": ""}`
    (&[0; 4], Absent),
    (b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0", Value),
    // `["a", "b"]`
    (b"\x02\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0a\0\0b\0\0", Value),
    // Text that begins like a list.
    (b"\x01\0\0\0\x01\0\0\0\0\0\0\0a\0", Value),
    (b"\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0", Value),
    (b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0", Value),
    // Mappings, which have no order: `{"a": "x"}`, `{"a": "x", "b": true}`, `{"a": []}`, `{"":
    // "x"}`.
    (b"\x01\0\0\0\x01\0\0\0\x01\0\0\0a\0x\0", Unclear),
    (b"\x02\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0a\0x\0b\0\x01\0", Unclear),
    (b"\x01\0\0\0\x01\0\0\0\x04\0\0\0a\0\0\0\0\0\0", Unclear),
    (b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0x\0", Unclear),
];

/// A list in Envoy's encoding.
fn list(items: &[&[u8]]) -> Vec<u8> {
    let mut list = (items.len() as u32).to_le_bytes().to_vec();
    for item in items {
        list.extend((item.len() as u32).to_le_bytes());
        list.extend([0; 4]);
    }
    items.iter().for_each(|item| list.extend([item, &b"\0\0"[..]].concat()));
    list
}

fn source(kind: &str) -> Tree {
    let text = |text: &str| Tree::Text(text.into());
    if kind == "metadata" { Tree::List(vec![text("space"), text("k")]) } else { text("k") }
}

fn field(kind: &str) -> ConditionField {
    match kind {
        "header" => ConditionField::Header("k".into()),
        "query" => ConditionField::Query("k".into()),
        "cookie" => ConditionField::Cookie("k".into()),
        _ => ConditionField::Property(Property::new(&PATH)),
    }
}

/// Fails unless the actor and the conditions agree. Returns the actor's result.
fn agree(kind: &str, request: &FakeRequest, is_plain: bool) -> Found {
    let known = REGISTRY.iter().find(|known| known.name == kind).unwrap();
    let found = (known.build)(&source(kind), &[]).unwrap().find(request);
    let is_found = !matches!(found, SourceValue::Absent | SourceValue::NoMetadata);
    let present = |is| Condition::new(field(kind), Test::Present(is));
    let case = format!("{kind} {request:?} {found:?}");
    assert_eq!(condition::may_hold(&present(true), request), is_found, "{case}");
    assert_eq!(condition::must_hold(&present(false), request), !is_found, "{case}");
    if !is_found {
        assert!(
            !condition::must_hold(&present(true), request)
                && condition::may_hold(&present(false), request),
            "{case}"
        );
    } else if matches!(found, SourceValue::Value(_)) && is_plain {
        assert!(
            condition::must_hold(&present(true), request)
                && !condition::may_hold(&present(false), request),
            "{case}"
        );
    }
    match found {
        SourceValue::Value(_) => Value,
        SourceValue::Unclear => Unclear,
        _ => Absent,
    }
}

#[test]
fn presence_agrees_with_an_actor_of_the_same_source() {
    let mut rng = Rng::with_seed(30);
    let (plain, odd) = (["k", "k", "x"], ["k", "%6b", "x"]);
    let texts =
        ["", "", " ", "\t", "\"", "\"\"", "v", "\"v\"", "+", "%20", ";", "\\", ",", "=", "\0"];
    let (mut found, mut absent) = (0, 0);
    for _ in 0..20_000 {
        let kind = ["header", "query", "cookie", "metadata"][rng.usize(..4)];
        let mut value =
            || (0..rng.usize(..3)).map(|_| texts[rng.usize(..texts.len())]).collect::<String>();
        let values: Vec<String> = (0..3).map(|_| value()).collect();
        let count = rng.usize(..4);
        let is_plain = rng.bool();
        let names = if is_plain { plain } else { odd };
        let pairs = |rng: &mut Rng, between: &str| {
            let pair = |value: &String| format!("{}={value}", names[rng.usize(..names.len())]);
            values.iter().take(count).map(pair).collect::<Vec<_>>().join(between)
        };
        let request = match kind {
            "header" => values
                .iter()
                .take(count)
                .fold(FakeRequest::get("/"), |request, value| request.header("k", value)),
            "query" => FakeRequest::get(&format!("/?{}", pairs(&mut rng, "&"))),
            "cookie" => FakeRequest::get("/").header("cookie", pairs(&mut rng, "; ")),
            _ if count == 0 => FakeRequest::get("/"),
            _ if rng.bool() => FakeRequest::get("/").property(&PATH, &values[0]),
            _ => FakeRequest::get("/").property(&PATH, FORMS[rng.usize(..FORMS.len())].0),
        };
        *(if agree(kind, &request, is_plain) != Absent { &mut found } else { &mut absent }) += 1;
    }
    assert!(found > 2_000 && absent > 2_000, "{found} {absent}");
}

#[test]
fn metadata_is_present_unless_it_is_empty() {
    for (value, wanted) in FORMS {
        let request = FakeRequest::get("/").property(&PATH, value);
        assert_eq!(agree("metadata", &request, true), *wanted, "{value:?}");
        if *wanted == Unclear {
            let is = |is| Condition::new(field("metadata"), Test::Present(is));
            for is_present in [true, false] {
                assert!(condition::may_hold(&is(is_present), &request), "{value:?}");
                assert!(!condition::must_hold(&is(is_present), &request), "{value:?}");
            }
        }
    }
    assert_eq!(agree("metadata", &FakeRequest::get("/"), true), Absent);
}

#[test]
fn metadata_list_with_a_mapping_is_unclear() {
    let found =
        |value: &[u8]| agree("metadata", &FakeRequest::get("/").property(&PATH, value), true);
    for (value, wanted) in FORMS {
        // An empty list or mapping is an ordinary item.
        let wanted = if *wanted == Absent { Value } else { *wanted };
        let mut nested = value.to_vec();
        for _ in 0..100 {
            nested = list(&[b"a", &nested, b"b"]);
            assert_eq!(found(&nested), wanted, "{value:?}");
        }
    }
    // Deeper than any stack.
    let mut nested = Vec::new();
    while nested.len() < 60_000 {
        nested = list(&[&nested]);
    }
    assert_eq!(found(&nested), Value);
}
