//! Values at JSON pointers, compared with serde_json.

use diana_policy::json::pointed;
use fastrand::Rng;
use serde_json::{Map, Value};

use kit::seed;

fn text(json: &str, pointer: &str) -> Option<String> {
    pointed(json.as_bytes(), pointer).map(|value| String::from_utf8(value).unwrap())
}

/// The example of RFC 6901, section 5.
const EXAMPLE: &str = r#"{ "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4,
    "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8 }"#;

#[test]
fn example_of_the_rfc_is_read() {
    for (pointer, wanted) in [
        ("/foo", r#"["bar", "baz"]"#),
        ("/foo/0", "bar"),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
    ] {
        assert_eq!(text(EXAMPLE, pointer).as_deref(), Some(wanted), "{pointer}");
    }
}

#[test]
fn missing_values_are_not_found() {
    for (json, pointer) in [
        (EXAMPLE, "/fo"),
        (EXAMPLE, "/foo/2"),
        (EXAMPLE, "/foo/-"),
        (EXAMPLE, "/foo/00"),
        (EXAMPLE, "/foo/+0"),
        (EXAMPLE, "/foo/0/0"),
        (EXAMPLE, "/foo/99999999999999999999"),
        (EXAMPLE, "/a~01b"),
        (r#"{"kvs": []}"#, "/kvs/0"),
        (r#"{"kvs": []}"#, "/kvs/0/value"),
        (r#"{"kvs": null}"#, "/kvs"),
        (r#"{"kvs" "x"}"#, "/kvs"),
        (r#"{"kvs": "x"#, "/kvs"),
        (r#"{"kvs": [1"#, "/kvs/1"),
        ("limits: []", "/limits"),
        ("", "/a"),
    ] {
        assert_eq!(text(json, pointer), None, "{pointer} in {json}");
    }
    assert_eq!(text(r#"{"a": "b\n\"c\" \u00fc"}"#, "/a").unwrap(), "b\n\"c\" ü");
    assert_eq!(text(r#"[[], {"a": ["]", {"b": "}"}]}, "x"]"#, "/2").unwrap(), "x");
    assert_eq!(text(&"[".repeat(100_000), "/1"), None);
}

#[test]
fn any_pointer_agrees_with_serde_json() {
    let mut random = Rng::with_seed(seed::next());
    let mut found = 0;
    for _ in 0..10_000 {
        let value = tree(&mut random, 4);
        let json = if random.bool() { value.to_string() } else { format!("{value:#}") };
        let pointer = pointer(&mut random, &value);
        if pointer.is_empty() {
            continue;
        }
        let wanted = value.pointer(&pointer).filter(|value| !value.is_null());
        let got = pointed(json.as_bytes(), &pointer);
        match wanted {
            None => assert_eq!(got, None, "{pointer:?} in {json}"),
            Some(Value::String(text)) => {
                assert_eq!(got.as_deref(), Some(text.as_bytes()), "{json}")
            }
            Some(wanted) => {
                let got: Value = serde_json::from_slice(&got.expect(&pointer)).expect(&json);
                assert_eq!(&got, wanted, "{pointer:?} in {json}");
            }
        }
        found += usize::from(wanted.is_some());
        let mut bytes = json.into_bytes();
        let at = random.usize(0..bytes.len());
        bytes[at] = b"{}[]\",:\\~/0u\xff "[random.usize(0..14)];
        _ = pointed(&bytes, &pointer);
    }
    assert!(found > 1_000, "{found}");
}

fn tree(random: &mut Rng, depth: usize) -> Value {
    match random.u8(if depth == 0 { 0..4 } else { 0..8 }) {
        0 => Value::Null,
        1 => Value::Bool(random.bool()),
        2 => Value::from(random.i64(..)),
        3 => Value::String(name(random)),
        4 | 5 => (0..random.usize(0..4)).map(|_| tree(random, depth - 1)).collect(),
        _ => {
            let pairs = (0..random.usize(0..4)).map(|_| (name(random), tree(random, depth - 1)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

fn name(random: &mut Rng) -> String {
    (0..random.usize(0..4))
        .map(|_| *random.choice(&['a', '/', '~', '"', '\\', '1', 'ü', ' ']).unwrap())
        .collect()
}

/// A random pointer, which may lead nowhere.
fn pointer(random: &mut Rng, value: &Value) -> String {
    let step = match value {
        Value::Array(items) => random.usize(0..=items.len()).to_string(),
        Value::Object(pairs) if !pairs.is_empty() && random.u8(..) > 20 => {
            pairs.keys().nth(random.usize(0..pairs.len())).unwrap().clone()
        }
        Value::Object(_) => name(random),
        _ => return String::new(),
    };
    if random.u8(..) < 20 {
        return String::new();
    }
    let below = match value {
        Value::Array(items) => step.parse().ok().and_then(|at: usize| items.get(at)),
        _ => value.get(&step),
    };
    let below = below.map(|value| pointer(random, value)).unwrap_or_default();
    format!("/{}{below}", step.replace('~', "~0").replace('/', "~1"))
}
