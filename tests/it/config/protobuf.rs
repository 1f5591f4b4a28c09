//! Configurations as `google.protobuf.Struct`, in the bytes that Envoy hands on.

use diana_config::parse;
use diana_core::tree::Tree;

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

fn structure(pairs: &[(String, Tree)]) -> Vec<u8> {
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
fn means_what_the_same_yaml_means() {
    let policy = parse(&with(rule(Tree::Int(7)))).unwrap();
    assert!(policy.shadow);
    assert_eq!(policy.limits[0].url.path(), b"/a");
    assert_eq!(policy.limits[0].rules[0].quota.rpu, 7);
}

#[test]
fn has_problems_by_their_path() {
    let problems = parse(&with(rule(Tree::Number("0.5".into())))).unwrap_err().to_string();
    assert!(problems.starts_with("limits[0].rules[0].rpu: found `0.5`"), "{problems}");
}

#[test]
fn numbers_are_spelled_as_people_do() {
    let spelled = [
        ("0.29", "0.29"),
        ("-1.25", "-1.25"),
        ("0.30000000000000004", "0.3"),
        ("123456789.123456", "123456789.123456"),
        ("1e20", "100000000000000000000"),
        ("1e300", "beyond 1e38"),
        ("inf", "beyond 1e38"),
        ("nan", "beyond 1e38"),
    ];
    for (number, text) in spelled {
        let problems = parse(&with(rule(Tree::Number(number.into())))).unwrap_err().to_string();
        assert!(problems.contains(&format!("rpu: found `{text}`, ")), "{number}: {problems}");
    }
}

#[test]
fn broken_bytes_are_refused() {
    let whole = with(rule(Tree::Int(7)));
    // Without its last field the message is whole again; everywhere else it is cut.
    let entries = whole.len() - structure(&[("shadow".into(), Tree::Bool(true))]).len();
    for end in (0..whole.len()).filter(|&end| end != entries) {
        assert!(parse(&whole[..end]).is_err(), "cut at {end}");
    }
    let mut rng = fastrand::Rng::with_seed(kit::seed::fresh());
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(0..bytes.len());
            bytes[at] = rng.u8(..);
        }
        _ = parse(&bytes);
    }
    let deep = (0..10_000).fold(text("end"), |inner, _| Tree::List(vec![inner]));
    // Taken apart by hand: dropping it would recurse as deep.
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
