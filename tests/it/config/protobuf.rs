//! Configurations as `google.protobuf.Struct`, in the bytes that Envoy passes.

use super::parse;
use diana_policy::tree::Tree;
use fastrand::Rng;

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 & 0x7f | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag], &varint(content.len())[..], content].concat()
}

pub fn structure(pairs: &[(String, Tree)]) -> Vec<u8> {
    let entry = |(key, tree): &(String, Tree)| {
        field(0x0a, &[field(0x0a, key.as_bytes()), field(0x12, &value(tree))].concat())
    };
    pairs.iter().flat_map(entry).collect()
}

fn value(tree: &Tree) -> Vec<u8> {
    match tree {
        Tree::Null => vec![0x08, 0],
        Tree::Bool(flag) => vec![0x20, u8::from(*flag)],
        Tree::Int(number) => [&[0x11], &(*number as f64).to_le_bytes()[..]].concat(),
        Tree::Number(text) => [&[0x11], &text.parse::<f64>().unwrap().to_le_bytes()[..]].concat(),
        Tree::Text(text) => field(0x1a, text.as_bytes()),
        Tree::Map(pairs) => field(0x2a, &structure(pairs)),
        Tree::List(items) => field(
            0x32,
            &items.iter().flat_map(|item| field(0x0a, &value(item))).collect::<Vec<_>>(),
        ),
    }
}

fn map(pairs: &[(&str, Tree)]) -> Tree {
    Tree::Map(pairs.iter().map(|(key, tree)| ((*key).into(), tree.clone())).collect())
}

fn text(text: &str) -> Tree {
    Tree::Text(text.into())
}

/// The bytes of a configuration with one rule.
fn with(rule: Tree) -> Vec<u8> {
    let entry = map(&[("Url", text("/a")), ("rules", Tree::List(vec![rule]))]);
    structure(&[("limits".into(), Tree::List(vec![entry])), ("shadow".into(), Tree::Bool(true))])
}

fn rule(rpu: Tree) -> Tree {
    map(&[("actor", text("all")), ("unit", text("second")), ("rpu", rpu), ("scope", text("local"))])
}

#[test]
fn struct_means_the_same_as_its_yaml() {
    let policy = parse(&with(rule(Tree::Int(7)))).unwrap();
    assert!(policy.shadow);
    assert_eq!(policy.limits[0].urls[0].path(), b"/a");
    assert_eq!(policy.limits[0].rules[0].quota.rpu, 7);
}

/// A random tree of words with a meaning for the reader, and of texts of any length.
fn random(rng: &mut Rng, depth: usize) -> Tree {
    const WORDS: &[&str] = &[
        "limits", "Url", "rules", "actor", "unit", "rpu", "actors", "response", "headers", "keys",
    ];
    let kinds = if depth == 0 { 6 } else { 8 };
    match rng.u8(0..kinds) {
        0 => Tree::Null,
        1 => Tree::Bool(rng.bool()),
        2 => Tree::Int(rng.i64(-1 << 53..1 << 53).into()),
        3 => Tree::Number(format!(
            "{}{}.{}",
            rng.choice(["", "-"]).unwrap_or(""),
            rng.u16(..),
            rng.choice([25, 5, 75]).unwrap_or(5)
        )),
        4 => text(&"x".repeat(rng.usize(0..300))),
        5 => text(&"y".repeat(rng.usize(0..40_000))),
        6 => Tree::List((0..rng.usize(0..4)).map(|_| random(rng, depth - 1)).collect()),
        _ => {
            let mut key = || rng.choice(WORDS).map_or(String::new(), |word| word.to_string());
            let keys: Vec<String> = (0..4).map(|_| key()).collect();
            Tree::Map(keys.into_iter().map(|key| (key, random(rng, depth - 1))).collect())
        }
    }
}

pub fn json(tree: &Tree) -> String {
    match tree {
        Tree::Null => "null".into(),
        Tree::Bool(flag) => flag.to_string(),
        Tree::Int(number) => number.to_string(),
        Tree::Number(text) => text.clone(),
        Tree::Text(text) => format!("{text:?}"),
        Tree::List(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(",")),
        Tree::Map(pairs) => {
            let pair = |(key, value): &(String, Tree)| format!("{key:?}:{}", json(value));
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(","))
        }
    }
}

/// The problems of a document, without positions.
fn problems(bytes: &[u8]) -> Vec<String> {
    let problems = parse(bytes).err();
    let list = problems.iter().flat_map(|problems| problems.list());
    list.map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}

#[test]
fn struct_has_the_same_problems_as_its_json() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..500 {
        let keys = ["limits", "actors", "response", "keys", "remote"];
        let pairs: Vec<_> = keys.map(|key| (key.to_string(), random(&mut rng, 3))).into();
        let text = json(&Tree::Map(pairs.clone()));
        assert_eq!(problems(&structure(&pairs)), problems(text.as_bytes()), "{text}");
    }
}

#[test]
fn struct_problems_have_a_path() {
    let problems = parse(&with(rule(Tree::Number("0.5".into())))).unwrap_err().to_string();
    assert!(problems.starts_with("limits[0].rules[0].rpu: found `0.5`"), "{problems}");
}

#[test]
fn numbers_are_reported_in_decimal() {
    let spelled = [
        ("0.29", "0.29"),
        ("-1.25", "-1.25"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("123456789.123456", "123456789.123456"),
        ("1e20", "100000000000000000000"),
        ("1e300", "1e300"),
        ("inf", "inf"),
        ("nan", "NaN"),
    ];
    for (number, text) in spelled {
        let problems = parse(&with(rule(Tree::Number(number.into())))).unwrap_err().to_string();
        assert!(problems.contains(&format!("rpu: found `{text}`, ")), "{number}: {problems}");
    }
}

#[test]
fn broken_bytes_are_refused() {
    let whole = with(rule(Tree::Int(7)));
    // Cut before the last field, the message is valid. Everywhere else it is truncated.
    let entries = whole.len() - structure(&[("shadow".into(), Tree::Bool(true))]).len();
    for end in (0..whole.len()).filter(|&end| end != entries) {
        assert!(parse(&whole[..end]).is_err(), "cut at {end}");
    }
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(0..bytes.len());
            bytes[at] = rng.u8(..);
        }
        _ = parse(&bytes);
    }
    let deep = (0..10_000).fold(text("end"), |inner, _| Tree::List(vec![inner]));
    // Dismantled in a loop, since dropping it would recurse as deeply.
    let mut bytes = Vec::new();
    let mut inner = Some(deep);
    while let Some(Tree::List(mut items)) = inner {
        inner = items.pop();
        bytes = field(0x32, &field(0x0a, &bytes));
    }
    assert!(parse(&field(0x0a, &[field(0x0a, b"limits"), field(0x12, &bytes)].concat())).is_err());
}

#[test]
fn text_that_begins_with_a_new_line_stays_text() {
    assert!(parse(b"\nlimits: []\n").is_ok());
    assert!(parse(b"\n\n\n\n\n\n\n\n\n\n\n\n\n\nlimits: []\n").is_ok());
}
