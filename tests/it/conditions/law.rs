//! A condition on a value may hold if it holds for any reader of the request, and must hold only if it does for all
//! of them.

use diana_core::policy::{Condition, Field, Test};
use fastrand::Rng;
use kit::fake::FakeRequest;
use kit::seed;

/// Takes a request's text for one value of the parameter or cookie `a b`, or for none.
type Reader = Box<dyn Fn(&str) -> Option<String>>;

const NAME: &str = "a b";

fn text(random: &mut Rng, pieces: &[&str], most: usize) -> String {
    (0..random.usize(..=most)).map(|_| *random.choice(pieces).unwrap()).collect()
}

/// Tests that have a chance to hold.
fn test(random: &mut Rng) -> Test {
    let values = ["x", "x y", "x+y", "%78", "xy", "y", "", "\"x\"", "\\x"];
    let value = |random: &mut Rng| random.choice(values).unwrap().to_owned();
    match random.u32(..8) {
        0 | 1 => Test::Exact(value(random)),
        2 => Test::Prefix("x".into()),
        3 => Test::Suffix("y".into()),
        4 => Test::Contains(random.choice(["x", "+", " ", "%"]).unwrap().into()),
        5 => {
            let mut texts = vec![value(random), value(random)];
            texts.sort();
            Test::In(texts)
        }
        6 => Test::Present(random.bool()),
        _ => Test::Not(value(random)),
    }
}

fn holds(test: &Test, value: Option<&str>) -> bool {
    let Some(value) = value else { return matches!(test, Test::Present(false) | Test::Not(_)) };
    match test {
        Test::Exact(text) => value == text,
        Test::Prefix(text) => value.starts_with(text.as_str()),
        Test::Suffix(text) => value.ends_with(text.as_str()),
        Test::Contains(text) => value.contains(text.as_str()),
        Test::In(texts) => texts.iter().any(|text| text == value),
        Test::Present(is_wanted) => *is_wanted,
        Test::Not(text) => value != text,
    }
}

fn percent(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, tail)) = rest.split_first() {
        let code = || u8::from_str_radix(std::str::from_utf8(tail.get(..2)?).ok()?, 16).ok();
        match code().filter(|_| first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &tail[2..]),
            None => (bytes.push(first), rest = tail),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn form(text: &str) -> String {
    percent(&text.replace('+', " "))
}

fn as_it_is(text: &str) -> String {
    text.into()
}

const DECODERS: [fn(&str) -> String; 3] = [as_it_is, percent, form];

/// Whoever reads pairs between some `ends`, the first or the last of a name.
fn pairs(
    ends: &'static [char],
    trims: bool,
    decode: fn(&str) -> String,
    unquote: fn(&str) -> String,
    takes_last: bool,
) -> Reader {
    Box::new(move |text| {
        let trim = |text: &str| if trims { text.trim().to_owned() } else { text.to_owned() };
        let named = text.split(ends).filter_map(|pair| {
            let (key, value) = match pair.split_once('=') {
                None if trims => return None,
                None => (pair, ""),
                Some(pair) => pair,
            };
            (decode(&trim(key)) == NAME).then(|| decode(&unquote(&trim(value))))
        });
        let named: Vec<String> = named.collect();
        if takes_last { named.last().cloned() } else { named.first().cloned() }
    })
}

fn judge(
    readers: &[Reader],
    text: &str,
    condition: &Condition,
    request: &FakeRequest,
) -> (bool, bool) {
    let said: Vec<bool> =
        readers.iter().map(|read| holds(&condition.test, read(text).as_deref())).collect();
    let (may, must) = (condition.may_hold(request), condition.must_hold(request));
    let told = format!("{text:?} under {condition:?}");
    assert!(may || !said.contains(&true), "{told} escapes");
    assert!(!must || !said.contains(&false), "{told} is exempt");
    (may, must)
}

#[test]
fn of_a_query_parameter() {
    const ENDS: [&[char]; 2] = [&['&'], &['&', ';']];
    const PIECES: [&str; 14] =
        ["&", "&", ";", "=", "=", "a b", "a+b", "a%20b", "%61 b", "x", "y", "%78", "+", "%2B"];
    let readers: Vec<Reader> = ENDS
        .into_iter()
        .flat_map(|ends| DECODERS.map(|decode| (ends, decode)))
        .flat_map(|(ends, decode)| {
            [false, true].map(|last| pairs(ends, false, decode, as_it_is, last))
        })
        .collect();
    let mut random = Rng::with_seed(seed::next());
    let mut seen = [0; 3];
    for _ in 0..60_000 {
        let begin = random.choice(["a b=x", "a b=x&", "a+b=", "", ""]).unwrap();
        let query = begin.to_owned() + &text(&mut random, &PIECES, 7);
        let request = FakeRequest::get(&format!("/p?{query}#&a b=z"));
        let condition = Condition { field: Field::Query(NAME.into()), test: test(&mut random) };
        let (may, must) = judge(&readers, &query, &condition, &request);
        seen[usize::from(may) + usize::from(must)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
}

/// Without the quotes around it, and with what is escaped between them written out.
fn unescaped(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) else {
        return value.into();
    };
    let mut plain = String::new();
    let mut rest = inner;
    while let Some(first) = rest.chars().next() {
        let octal = rest.get(1..4).and_then(|code| u8::from_str_radix(code, 8).ok());
        let tail = match (first, octal) {
            ('\\', Some(byte)) => (plain.push(char::from(byte)), 4),
            ('\\', None) if rest.len() > 1 => (plain.push_str(&rest[1..2]), 2),
            _ => (plain.push(first), 1),
        };
        rest = &rest[tail.1..];
    }
    plain
}

fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
    inner.unwrap_or(value).into()
}

#[test]
fn of_a_cookie() {
    const PIECES: [&str; 14] =
        ["; ", ";", "=", "=", "a b", "a%20b", " ", "x", "y", "%78", "\"", "\\", "\\170", "\"x\""];
    const UNQUOTERS: [fn(&str) -> String; 3] = [as_it_is, unquoted, unescaped];
    let readers: Vec<Reader> = DECODERS
        .into_iter()
        .flat_map(|decode| UNQUOTERS.map(|unquote| (decode, unquote)))
        .flat_map(|(decode, unquote)| {
            [false, true].map(|last| pairs(&[';'], true, decode, unquote, last))
        })
        .collect();
    let mut random = Rng::with_seed(seed::next());
    let mut seen = [0; 3];
    for _ in 0..60_000 {
        let begin = random.choice(["a b=x", "a b=\"x", "a b=x; ", "", ""]).unwrap();
        let header = begin.to_owned() + &text(&mut random, &PIECES, 7);
        let request = FakeRequest::get("/").header("cookie", &header);
        let condition = Condition { field: Field::Cookie(NAME.into()), test: test(&mut random) };
        let (may, must) = judge(&readers, &header, &condition, &request);
        seen[usize::from(may) + usize::from(must)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
}
