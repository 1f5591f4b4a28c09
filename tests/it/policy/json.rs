//! One member of a JSON object, compared with serde_json.

use diana_policy::json::{Member, member};
use fastrand::Rng;
use serde_json::Value;

use kit::seed;

fn value(json: &[u8]) -> Option<Vec<u8>> {
    if let Member::Value(value) = member(json, &["sub"]) { Some(value) } else { None }
}

fn text(json: &str) -> Option<String> {
    value(json.as_bytes()).map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn text_and_whole_numbers_are_read() {
    for (json, wanted) in [
        (r#"{"sub":"bob"}"#, Some("bob")),
        (" {\n\t\"sub\" : \"bob\" , \"a\" : 1 } ", Some("bob")),
        (r#"{"sub":""}"#, Some("")),
        (r#"{"sub":42}"#, Some("42")),
        (r#"{"sub":-1}"#, Some("-1")),
        (r#"{"sub":"a\"\\\/\b\f\n\r\té€\ud83d\ude00"}"#, Some("a\"\\/\u{8}\u{c}\n\r\té€😀")),
        (r#"{"s\u0075b":"bob"}"#, Some("bob")),
        (r#"{"a":"{\"sub\":\"eve\"}","b":["sub","]",{"sub":"eve"}],"sub":"bob"}"#, Some("bob")),
        (r#"{"sub":"eve","sub":"bob"}"#, Some("bob")),
        (r#"{"sub":"eve","s\u0075b":"bob"}"#, Some("bob")),
        (r#"{"s\u0075b":"eve","sub":"bob"}"#, Some("bob")),
        (r#"{"sub":"eve","s\u0075b":1.5}"#, None),
        (r#"{"sub":"eve","sub":null}"#, None),
        (r#"{"sub":1.5,"sub":"bob"}"#, Some("bob")),
        (r#"{"sub":{"a":1}}"#, None),
        (r#"{"sub":["bob"]}"#, None),
        (r#"{"sub":1.5}"#, None),
        (r#"{"sub":1e3}"#, None),
        (r#"{"sub":-}"#, None),
        (r#"{"sub":true}"#, None),
        (r#"{"sub":null}"#, None),
        (r#"{"sub":"\ud83d"}"#, None),
        (r#"{"sub":"\ud83dx"}"#, None),
        (r#"{"sub":"\ud83d\u0041"}"#, None),
        (r#"{"sub":"\udc00"}"#, None),
        (r#"{"sub":"\u12"}"#, None),
        (r#"{"sub":"\x"}"#, None),
        (r#"{"sub":"bob""#, None),
        (r#"{"sub":"bob",}"#, None),
        (r#"{"sub":"bob\"}"#, None),
        (r#"{"sub" "bob"}"#, None),
        (r#"{"sub":"bob"} x"#, None),
        (r#"{"sub":"bob","a":01}"#, None),
        (r#"["sub","bob"]"#, None),
        ("{}", None),
        ("", None),
    ] {
        assert_eq!(text(json).as_deref(), wanted, "{json}");
    }
    // Text must be UTF-8. Other members are not validated.
    assert_eq!(value(b"{\"sub\":\"\xff\xfe\"}"), None);
    assert_eq!(value(b"{\"a\":\"\xff\",\"sub\":\"bob\"}").unwrap(), b"bob");
    let nested = "[".repeat(100_000);
    assert_eq!(text(&format!("{{\"a\":{nested}")), None);
    let closed = "]".repeat(100_000);
    assert_eq!(text(&format!("{{\"a\":{nested}{closed},\"sub\":1}}")).as_deref(), Some("1"));
    let digits = "9".repeat(100);
    assert_eq!(text(&format!("{{\"sub\":{digits}}}")), Some(digits));
}

/// Only an empty value is like none. An upstream may read all others.
#[test]
fn member_that_cannot_be_read_is_not_absent() {
    for json in ["{}", r#"{"a":1}"#, r#"{"sub":null}"#, r#"{"sub":[ ]}"#, r#"{"sub":{}}"#] {
        assert_eq!(member(json.as_bytes(), &["sub"]), Member::Absent, "{json}");
    }
    for json in [
        "",
        "[]",
        r#"["sub"]"#,
        r#"{"sub":1.5}"#,
        r#"{"sub":-}"#,
        r#"{"sub":true}"#,
        r#"{"sub":["bob"]}"#,
        r#"{"sub":[null]}"#,
        r#"{"sub":{"a":1}}"#,
        r#"{"sub":"\ud83d"}"#,
        r#"{"sub":"bob""#,
        r#"{"sub":"bob"} x"#,
    ] {
        assert_eq!(member(json.as_bytes(), &["sub"]), Member::Unreadable, "{json}");
    }
    assert_eq!(member(b"{\"sub\":\"\xff\"}", &["sub"]), Member::Unreadable);
}

#[test]
fn member_within_members_is_read() {
    for (json, wanted) in [
        (r#"{"a":{"b":{"c":"bob"}}}"#, Member::Value("bob".into())),
        (r#"{"a":{"b":1},"a":{"b":{"c":7}}}"#, Member::Value("7".into())),
        (r#"{"a":{"b":{"c":1}},"a":{"b":1}}"#, Member::Unreadable),
        (r#"{"a":{"b":{"c":null}}}"#, Member::Absent),
        (r#"{"a":{"b":{}}}"#, Member::Absent),
        (r#"{"a":{"b":null}}"#, Member::Absent),
        (r#"{"a":null}"#, Member::Absent),
        (r#"{"a":{}}"#, Member::Absent),
        (r#"{"a":[{"b":{"c":1}}]}"#, Member::Unreadable),
        (r#"{"a":"b"}"#, Member::Unreadable),
        (r#"{"a.b":{"c":1}}"#, Member::Absent),
        ("null", Member::Unreadable),
    ] {
        assert_eq!(member(json.as_bytes(), &["a", "b", "c"]), wanted, "{json}");
    }
}

#[test]
fn member_agrees_with_serde_json() {
    let seed = seed::next();
    let mut random = Rng::with_seed(seed);
    let mut valid = 0;
    for _ in 0..20_000 {
        let mut json = object(&mut random, 3).into_bytes();
        for _ in 0..random.usize(..3) {
            let place = random.usize(..json.len());
            json[place] = *random.choice(b"\"\\{}[],:u0 ").unwrap();
        }
        let found = value(&json);
        // serde_json keeps only the last of equal keys, as required here.
        let Ok(Value::Object(object)) = serde_json::from_slice(&json) else { continue };
        let wanted = match object.get("sub") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) if !number.is_f64() => Some(number.to_string()),
            _ => None,
        };
        valid += 1;
        assert_eq!(found, wanted.map(String::into_bytes), "{}", json.escape_ascii());
    }
    assert!(valid > 5_000, "{valid} of them were JSON");
}

fn object(random: &mut Rng, depth: usize) -> String {
    let mut names = ["sub", "a", "su", "é", "\\u0073ub", ""];
    random.shuffle(&mut names);
    let members = names.iter().take(random.usize(..5));
    let members: Vec<String> = members
        .map(|name| format!("{0}\"{name}\"{0}:{1}", space(random), any(random, depth)))
        .collect();
    format!("{{{}{}}}", members.join(","), space(random))
}

fn any(random: &mut Rng, depth: usize) -> String {
    let value = match random.u32(..if depth == 0 { 4 } else { 6 }) {
        0 => random.i32(..).to_string(),
        1 => random.choice(["true", "null", "1.5", "-1e9", "0"]).unwrap().to_string(),
        2 => Value::String((0..random.usize(..9)).map(|_| random.char(..)).collect()).to_string(),
        3 => random.choice([r#""\u00e9\"""#, r#""\\""#, r#""}]""#]).unwrap().to_string(),
        4 => object(random, depth - 1),
        _ => format!("[{},{}]", any(random, depth - 1), any(random, depth - 1)),
    };
    format!("{0}{value}{0}", space(random))
}

fn space(random: &mut Rng) -> &'static str {
    random.choice(["", "", "", " ", "\n\t"]).unwrap()
}
