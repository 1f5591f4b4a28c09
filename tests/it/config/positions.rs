//! Every problem has the line and column of the node that it blames.

use diana_config::parse;

/// For every problem, what stands in the text at its position.
fn blamed(text: &str) -> Vec<(String, String)> {
    let problems = parse(text.as_bytes()).expect_err("a document with problems");
    let lines: Vec<&str> = text.lines().collect();
    let problems = problems.list().iter().map(|problem| {
        let (line, column) = problem.position.unwrap_or_else(|| panic!("no position: {problem}"));
        let rest: String = lines[line - 1].chars().skip(column - 1).collect();
        let end = rest.find([',', '{', '}', ']', ':', ' ']).unwrap_or(rest.len());
        let end = if rest.starts_with('{') { 1 } else { end };
        (problem.path.clone(), rest[..end].to_string())
    });
    problems.collect()
}

fn expect(text: &str, expected: &[(&str, &str)]) {
    let blamed = blamed(text);
    let blamed: Vec<(&str, &str)> =
        blamed.iter().map(|(path, at)| (path.as_str(), at.as_str())).collect();
    assert_eq!(blamed, expected, "{text}");
}

#[test]
fn in_block_style() {
    let text = "
limits:
  - Url: /
    rules:
      - actor: devise
        unit: second
        rpu: 10
        colour: red
      - unit: day
        actor: all
keys: none
";
    let expected = [
        ("limits[0].rules[0].actor", "devise"),
        ("limits[0].rules[0].colour", "colour"),
        ("limits[0].rules[1].rpu", "unit"),
        ("keys", "none"),
    ];
    expect(text, &expected);
}

#[test]
fn in_flow_style_and_json() {
    let text =
        "limits: [{Url: /, rules: [{actor: all, unit: dax, rpu: 'grün', ünit: 5}, {rpu: 5}]}]";
    let expected = [
        ("limits[0].rules[0].unit", "dax"),
        ("limits[0].rules[0].rpu", "'grün'"),
        ("limits[0].rules[0].`ünit`", "ünit"),
        ("limits[0].rules[1].actor", "{"),
        ("limits[0].rules[1].unit", "{"),
    ];
    expect(text, &expected);
    let json = "{\"limits\":[\n {\"Url\":\"x\",\"rules\":[{\"actor\":\"all\",\"unit\":\"day\",\"rpu\":-1.0}]}]}";
    expect(json, &[("limits[0].Url", "\"x\""), ("limits[0].rules[0].rpu", "-1.0")]);
}

#[test]
fn in_several_documents() {
    let text = "Url: /\nrules: []\n---\nUrl: a\nrules: []\n---\n---\n- Url: b\n  rules: []\n";
    expect(text, &[("document[1].Url", "a"), ("document[3][0].Url", "b")]);
}

#[test]
fn of_an_alias_is_what_it_stands_for() {
    let text = "limits:\n- Url: /a\n  rules: &r [{actor: all, unit: day, rpu: x}]\n- Url: /b\n  rules: *r\nkeys: none\n";
    let expected =
        [("limits[0].rules[0].rpu", "x"), ("limits[1].rules[0].rpu", "x"), ("keys", "none")];
    expect(text, &expected);
}

#[test]
fn of_duplicate_keys_are_the_later_ones() {
    let text = "limits: []\nkeys: 1\nkeys: 2\nlog: none\nkeys: 3\n";
    let problems = parse(text.as_bytes()).expect_err("duplicates");
    let lines: Vec<_> = problems.list().iter().map(|problem| problem.position).collect();
    assert_eq!(lines, [Some((3, 1)), Some((5, 1))]);
}

#[test]
fn only_the_first_fifty_problems_are_shown() {
    let rules = "    - {actor: x, unit: day, rpu: 1}\n".repeat(60);
    let problems = parse(format!("limits:\n- Url: /\n  rules:\n{rules}").as_bytes());
    let problems = problems.expect_err("sixty problems");
    assert_eq!((problems.list().len(), problems.more()), (50, 10));
    let text = problems.to_string();
    assert_eq!((text.lines().count(), text.lines().last()), (51, Some("and 10 more")));
    assert!(text.starts_with("4:15 limits[0].rules[0].actor: "), "{text}");
}
