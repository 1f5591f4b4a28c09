//! For a rule, a condition holds if it holds for any reader of the request. For an exemption, it
//! must hold for all of them.

use diana_policy::number::signed_millionths;
use diana_policy::{Condition, ConditionField, Test};
use diana_request::matching::condition::{may_hold, must_hold};
use fastrand::Rng;
use kit::fake::FakeRequest;
use kit::seed;

/// Reads one value of the parameter or cookie `a b` from a request's text, if there is one.
type Reader = Box<dyn Fn(&str) -> Option<String>>;

const NAME: &str = "a b";

fn text(random: &mut Rng, pieces: &[&str], most: usize) -> String {
    (0..random.usize(..=most)).map(|_| *random.choice(pieces).unwrap()).collect()
}

/// A condition, negated or not.
fn condition(field: ConditionField, random: &mut Rng) -> Condition {
    let test = test(random);
    let is_negated = random.u32(..3) == 0 && !matches!(test, Test::Present(_) | Test::Not(_));
    Condition { is_negated, ..Condition::new(field, test) }
}

/// Tests that may hold.
fn test(random: &mut Rng) -> Test {
    let values = ["x", "x y", "x+y", "%78", "xy", "y", "", "\"x\"", "\\x", "é", "x%20y"];
    let value = |random: &mut Rng| random.choice(values).unwrap().to_owned();
    match random.u32(..9) {
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
        7 => Test::Between(5_000_000, 5_000_000),
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
        Test::Present(is_wanted) => *is_wanted != value.is_empty(),
        Test::Not(text) => value != text,
        Test::Between(least, most) => {
            signed_millionths(value.as_bytes()).is_some_and(|it| (*least..=*most).contains(&it))
        }
    }
}

/// The byte of two hex digits.
fn code(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|it| !it.starts_with('+'))?;
    u8::from_str_radix(digits, 16).ok()
}

fn percent(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| first == b'%').and_then(code);
        match code {
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

/// The text as written, decoded if only what requires encoding is encoded: such text has no other
/// meaning.
fn as_needed(text: &str, is_needed: fn(char) -> bool) -> String {
    let plain = percent(text);
    let fits = |tail: &str| {
        let byte = tail.as_bytes().get(..2).and_then(code);
        byte.is_some_and(|byte| !byte.is_ascii() || byte == b'%' || is_needed(byte.into()))
    };
    let is_clear = percent(&plain) == plain
        && !plain.contains(|it: char| it.is_control() || it == char::REPLACEMENT_CHARACTER);
    if is_clear && text.split('%').skip(1).all(fits) { plain } else { text.into() }
}

fn of_data(text: &str) -> String {
    as_needed(text, |byte| !byte.is_ascii_alphanumeric() && !"-._~".contains(byte))
}

type Decoders = [fn(&str) -> String; 3];

const DECODERS: Decoders = [as_it_is, percent, form];

/// Readers of pairs separated by `ends`, with the first or the last one of a name.
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

/// A request must not escape any of `readers`, and must not be exempt for any of the `careful`
/// ones.
fn agree(
    (readers, careful): (&[Reader], &[Reader]),
    text: &str,
    condition: &Condition,
    request: &FakeRequest,
) -> (bool, bool) {
    let holds =
        |read: &Reader| holds(&condition.test, read(text).as_deref()) != condition.is_negated;
    let (may, must) = (may_hold(condition, request), must_hold(condition, request));
    let case = format!("{text:?} under {condition:?}");
    assert!(may || !readers.iter().any(holds), "{case} escapes");
    assert!(!must || careful.iter().all(holds), "{case} is exempt");
    (may, must)
}

fn readers_of_query(decoders: Decoders) -> Vec<Reader> {
    const ENDS: [&[char]; 2] = [&['&'], &['&', ';']];
    ENDS.into_iter()
        .flat_map(|ends| decoders.map(|decode| (ends, decode)))
        .flat_map(|(ends, decode)| {
            [false, true].map(|last| pairs(ends, false, decode, as_it_is, last))
        })
        .collect()
}

#[test]
fn query_parameter_conditions_agree_with_the_oracle() {
    const PIECES: [&str; 18] = [
        "&", "&", ";", "=", "=", "a b", "a+b", "a%20b", "%61 b", "x", "5", "%78", "+", "%2B",
        "%20", "%25", "%C3%A9", "%e9",
    ];
    let readers = readers_of_query(DECODERS);
    let careful = readers_of_query([of_data, percent, form]);
    let mut random = Rng::with_seed(seed::next());
    let mut seen = [0; 3];
    for _ in 0..60_000 {
        let begin = random.choice(["a b=x", "a b=x&", "a+b=", "", ""]).unwrap();
        let query = begin.to_owned() + &text(&mut random, &PIECES, 7);
        let request = FakeRequest::get(&format!("/p?{query}#&a b=z"));
        let condition = condition(ConditionField::Query(NAME.into()), &mut random);
        let (may, must) = agree((&readers, &careful), &query, &condition, &request);
        seen[usize::from(may) + usize::from(must)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
}

/// The value without the surrounding quotes and with resolved escapes.
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
fn cookie_conditions_agree_with_the_oracle() {
    const PIECES: [&str; 18] = [
        "; ", ";", "=", "=", "a b", "a%20b", " ", "x", "y", "%78", "\"", "\\", "\\170", "\"x\"",
        "%20", "%25", "%C3%A9", "%2B",
    ];
    // Quotes without text between them are no value, as for an actor.
    let quoted = |text: &str| if text == "\"\"" { String::new() } else { text.to_owned() };
    let unquoters: [fn(&str) -> String; 3] = [quoted, unquoted, unescaped];
    let readers_of = |decoders: Decoders| -> Vec<Reader> {
        decoders
            .into_iter()
            .flat_map(|decode| unquoters.map(|unquote| (decode, unquote)))
            .flat_map(|(decode, unquote)| {
                [false, true].map(|last| pairs(&[';'], true, decode, unquote, last))
            })
            .collect()
    };
    let (readers, careful) = (readers_of(DECODERS), readers_of([of_data, percent, form]));
    let mut random = Rng::with_seed(seed::next());
    let mut seen = [0; 3];
    for _ in 0..60_000 {
        let begin = random.choice(["a b=x", "a b=\"x", "a b=x; ", "", ""]).unwrap();
        let header = begin.to_owned() + &text(&mut random, &PIECES, 7);
        let request = FakeRequest::get("/").header("cookie", &header);
        let condition = condition(ConditionField::Cookie(NAME.into()), &mut random);
        let (may, must) = agree((&readers, &careful), &header, &condition, &request);
        seen[usize::from(may) + usize::from(must)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
}
