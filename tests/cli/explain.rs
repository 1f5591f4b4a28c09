//! `diana explain`.

use std::fs;

use crate::command::{diana, diana_in, folder, root, words};

#[test]
fn control_characters_of_a_request_are_escaped() {
    let rules = "limits: [{Url: /, rules: [{name: a, actor: account, unit: minute, rpu: 1}]}]";
    let folder = folder(&[("rules.yaml", rules)]);
    let header = "x-account-id: b\u{1b}[31mob";
    let ran = diana_in(&folder, &["explain", "rules.yaml", "--url", "/", "-H", header], b"");
    assert_eq!(ran.code, Some(0));
    assert!(!ran.out.contains('\u{1b}'), "{}", ran.out);
    assert!(ran.out.contains("account: b\\u{1b}[31mob (by header)"), "{}", ran.out);
}

#[test]
fn rules_in_two_files_are_not_explained() {
    let folder = folder(&[("bad.yaml", "limits: 5"), ("two.yaml", "limits: []")]);
    let several = diana(&["explain", folder.to_str().unwrap(), "--url", "/"]);
    assert!(several.code == Some(2) && several.error.contains("in 2 places"), "{several:?}");
}

#[test]
fn guide_shows_the_output_of_explain() {
    let guide = fs::read_to_string(root().join("docs/guides/command.md")).unwrap();
    let guide = guide.replace(" \\\n> ", " ");
    let (_, rest) = guide.split_once("$ diana explain ").unwrap();
    let (command, rest) = rest.split_once('\n').unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let words = words(command);
    assert_eq!(diana(&[&["explain"][..], &words].concat()).out, shown);
}

/// The cells of the table in the picture of the README.
#[test]
fn picture_shows_the_table_of_the_command() {
    let picture = fs::read_to_string(root().join("docs/refused.svg")).unwrap();
    let (_, table) = picture.split_once("| diana why</text>").unwrap();
    let cells = table.split("<text ").skip(1).map(|cell| cell.split(['<', '>']).nth(1).unwrap());
    let command = "explain envoy/envoy.yaml --url /reports --address 192.0.2.7 --times 3 --at 2026-11-24T21:38:30Z -H";
    let ran = diana(&[&words(command)[..], &["x-account-id: ada"]].concat());
    let shown = ran.out.split("\n\n").nth(1).unwrap();
    let shown =
        shown.lines().flat_map(|line| line.split("  ").map(str::trim).filter(|it| !it.is_empty()));
    assert_eq!(cells.collect::<Vec<_>>(), shown.collect::<Vec<_>>());
}
