//! `diana check`.

use std::fs;

use serde_json::{Value, json};

use crate::command::{diana, folder, root, with_input};

pub const GOOD: &str =
    "limits:\n  - Url: /\n    rules:\n      - {name: all, actor: all, unit: second, rpu: 10}\n";
/// Its problem is in line 4, column 62.
const BAD: &str = "limits:\n  - Url: /\n    rules:\n      - {name: all, actor: all, unit: second, rpu: 10, algo: TBB}\n";

/// The findings of the command in a file with this text, from its JSON output.
pub fn found(name: &str, text: &str) -> (Value, Option<i32>) {
    let folder = folder(&[(name, text)]);
    let ran = diana(&["check", "--format", "json", folder.join(name).to_str().unwrap()]);
    (serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}")), ran.code)
}

fn location(finding: &Value) -> (u64, u64, &str) {
    let number = |key: &str| finding[key].as_u64().unwrap();
    (number("line"), number("column"), finding["path"].as_str().unwrap())
}

/// The text with each line indented by `spaces`.
pub fn indented(text: &str, spaces: usize) -> String {
    text.lines().map(|line| format!("{}{line}\n", " ".repeat(spaces))).collect()
}

#[test]
fn shipped_examples_have_no_problems() {
    let ran = diana(&["check", "envoy"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The configurations inside files of Envoy and Istio are checked, too.
    for name in ["envoy/envoy.yaml", "envoy/istio/envoyfilter.yaml", "envoy/istio/wasmplugin.yaml"]
    {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let (all, code) = found("example.yaml", &text.replace("rpu: ", "rpx: "));
        assert!(all["problems"].as_u64() > Some(2) && code == Some(1), "{name}: {all}");
        for finding in all["findings"].as_array().unwrap() {
            let (line, _, _) = location(finding);
            let blamed = text.lines().nth(line as usize - 1).unwrap();
            assert!(blamed.contains("rpu: "), "{name}:{line}: {finding}");
        }
    }
}

#[test]
fn problem_in_json_has_the_position_of_its_text() {
    let text = serde_json::json!({"static_resources": {"configuration": {
        "@type": "type.googleapis.com/google.protobuf.StringValue", "value": BAD}}});
    let (all, code) = found("envoy.json", &format!("\n{text}"));
    let blamed = &all["findings"][0];
    assert_eq!((code, location(blamed).0), (Some(1), 2), "{all}");
}

/// The text between the begin and the end of each finding, as characters of the file.
fn marked(text: &str) -> Vec<String> {
    let (all, _) = found("rules.yaml", text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let findings = all["findings"].as_array().unwrap().iter();
    let marked = findings.map(|finding| {
        let at = |key: &str| finding[key].as_u64().unwrap() as usize - 1;
        let (first, last) = (at("line"), at("end_line"));
        let before = |line: usize| lines[..line].iter().map(|line| line.chars().count()).sum();
        let (start, end): (usize, usize) = (before(first), before(last));
        let (start, end) = (start + at("column"), end + at("end_column"));
        text.chars().skip(start).take(end - start).collect()
    });
    marked.collect()
}

#[test]
fn findings_end_where_their_nodes_end() {
    let rule = "actor: all, unit: minute, rpu: 1";
    let texts = [
        (format!("limits: [{{Url: /, rules: [{{{rule}, algo: a b}}]}}]"), "a b"),
        (format!("limits: [{{Url: /, rules: [{{{rule}, algo: 'ä \"b'}}]}}]"), "'ä \"b'"),
        (format!("limits: [{{Url: /, rules: [{{{rule}, algo: [T, B]}}]}}]"), "[T, B]"),
        (
            format!("limits:\n- Url: /\n  rules:\n    - {{{rule}, algo:\n  {{a: b,\n c: [d] }} }}"),
            "{a: b,\n c: [d] }",
        ),
        ("limits:\n- Url: /\n  rules:\n    a: 1\n    b: 2\n".into(), "a: 1\n    b: 2"),
        (format!("limits:\n- Url: /\n  rules:\n  - {{{rule}, nmae: x}}\n"), "nmae"),
        ("limits: []\nkeys: \"1\\u0020\"\n".into(), "\"1\\u0020\""),
    ];
    for (text, expected) in texts {
        assert_eq!(marked(&text), [expected], "{text}");
    }
    // The text of a ConfigMap.
    let text =
        "kind: ConfigMap\napiVersion: v1\ndata:\n  a.yaml: |\n    limits: 5x\n    rules: {a: b}\n";
    assert_eq!(marked(text), ["5x", "rules"]);
}

#[test]
fn folders_are_searched_recursively() {
    let folder = folder(&[
        ("a/good.yaml", GOOD),
        ("b/bad.yml", BAD),
        ("b/other.yaml", "a: b"),
        ("b/text.txt", BAD),
        (".git/bad.yaml", BAD),
    ]);
    let ran = diana(&["check", "--format", "json", folder.to_str().unwrap()]);
    let all: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&all["problems"], &all["rules"], ran.code),
        (&1.into(), &1.into(), Some(1)),
        "{all}"
    );
}

#[test]
fn unusable_input_has_a_reason() {
    let nothing = folder(&[("a.yaml", "a: b"), ("b.txt", "limits: []")]);
    let large = folder(&[("large.yaml", &"#".repeat((1 << 20) + 1))]);
    for (path, why) in [(nothing, "no rules found"), (large, "more than 1048576 bytes")] {
        let ran = diana(&["check", path.to_str().unwrap()]);
        assert!(ran.code == Some(2) && ran.out.contains(why), "{ran:?}");
    }
}

#[test]
fn binary_files_and_alias_bombs_are_refused() {
    let ran = with_input(&["check", "-"], b"limits: \xff");
    assert!(ran.code == Some(2) && ran.out.contains("not UTF-8 at offset 8"), "{ran:?}");
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let ran =
        with_input(&["check", "-"], format!("apiVersion: v1\nkind: ConfigMap\n{bomb}").as_bytes());
    assert!(ran.code == Some(1) && ran.out.contains("too large"), "{ran:?}");
}

#[test]
fn control_characters_of_a_file_are_escaped() {
    let ran = with_input(
        &["check", "-"],
        "limits:\n  - \"Url\u{202e}\\e[31m\": /\n    rules: []\n".as_bytes(),
    );
    let is_bad = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(ran.code == Some(1) && !ran.out.contains(is_bad), "{ran:?}");
}

#[test]
fn github_and_sarif_formats_have_the_same_problems() {
    let folder = folder(&[("bad, file.yaml", BAD)]);
    let path = folder.join("bad, file.yaml");
    let github = diana(&["check", "--format", "github", path.to_str().unwrap()]);
    let start = format!(
        "::error file={},line=4,col=62::limits[0].rules[0].algo: found `TBB`",
        path.to_str().unwrap().replace(',', "%2C")
    );
    assert!(github.out.starts_with(&start) && github.code == Some(1), "{github:?}");
    let sarif = diana(&["check", "--format", "sarif", path.to_str().unwrap()]);
    let log: Value = serde_json::from_str(&sarif.out).unwrap();
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&log["version"], &result["level"]), (&"2.1.0".into(), &"error".into()), "{log}");
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        location["region"],
        json!({"startLine": 4, "startColumn": 62, "endLine": 4, "endColumn": 65})
    );
    assert_eq!(result["ruleId"], log["runs"][0]["tool"]["driver"]["rules"][0]["id"]);
    assert!(
        location["artifactLocation"]["uri"].as_str().unwrap().ends_with("bad%2C%20file.yaml"),
        "{location}"
    );
}

#[test]
fn overriding_policy_is_found_across_files() {
    let policy = |name: &str, target: &str, more: &str| {
        format!(
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyExtensionPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
             targetRefs: [{{kind: {target}}}]\n  {more}\n"
        )
    };
    let ours = policy("ours", "Gateway, name: eg", "wasm: [{name: diana, config: {limits: []}}]");
    let route = "kind: HTTPRoute\nmetadata: {name: cart}\nspec: {parentRefs: [{name: eg}]}\n";
    let folder = folder(&[
        ("a/team.yaml", &policy("team", "HTTPRoute, name: cart", "lua: []")),
        ("ours.yaml", &ours),
        ("route.yaml", route),
    ]);
    // A file without rules is usable if it has such a policy.
    let team = folder.join("a/team.yaml");
    assert_eq!(diana(&["check", team.to_str().unwrap()]).code, Some(0));
    let ran = diana(&["check", "--format", "json", folder.to_str().unwrap()]);
    let all: Value = serde_json::from_str(&ran.out).unwrap();
    let finding = &all["findings"][0];
    assert_eq!((&finding["level"], ran.code), (&"mistake".into(), Some(1)), "{all}");
    assert_eq!(
        (location(finding).0, &finding["file"]),
        (1, &team.to_str().unwrap().into()),
        "{all}"
    );
    assert!(finding["message"].as_str().unwrap().contains("`team` of the HTTPRoute `cart`"));
    // It is merged in the same way as in the file.
    fs::write(&team, policy("team", "HTTPRoute, name: cart", "mergeType: StrategicMerge")).unwrap();
    assert_eq!(diana(&["check", folder.to_str().unwrap()]).code, Some(0));
}
