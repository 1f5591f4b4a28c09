//! Reports about the documents in `documents/`: their problems, or the warnings if a document has
//! no problem.

use std::fmt::Write;

use super::{parse, parse_remote, policy, problems};

use crate::support::documents::{assert_outcomes, outcome};

/// Lines count from the heading of a document, so a new document changes no others.
#[test]
fn documents_are_reported_with_all_problems() {
    let own = policy("limits: []\nmark: X-Mark").own();
    assert_outcomes(
        concat!(env!("CARGO_MANIFEST_DIR"), "/it/config/documents"),
        |file, _, text| {
            let bytes = text.as_bytes();
            let is_remote = file == "rules_of_a_centre";
            let parsed = if is_remote { parse_remote(bytes, &own) } else { parse(bytes) };
            let mut report = String::new();
            match parsed {
                Ok(policy) if policy.warnings.is_empty() => report += "no problems\n",
                Ok(policy) => {
                    for warning in policy.warnings {
                        writeln!(report, "warning: {warning}").unwrap();
                    }
                }
                Err(problems) => {
                    assert_eq!(problems.more(), 0, "write fewer problems in one document");
                    for problem in problems.list() {
                        writeln!(report, "{}", shortened(&problem.to_string())).unwrap();
                    }
                }
            }
            outcome("", &report)
        },
    );
}

/// A message with only the first keys of a long list, so that a new key changes no snapshot.
fn shortened(message: &str) -> String {
    let Some((before, after)) = message.split_once("allowed: ") else { return message.into() };
    let mut keys: Vec<&str> = after.split(", ").collect();
    if before.contains("unknown key") && keys.len() > 6 {
        keys.truncate(3);
        keys.push("…");
    }
    format!("{before}allowed: {}", keys.join(", "))
}

#[test]
fn tag_must_match_its_value() {
    let texts = [
        ("null", "~ Null"),
        ("bool", "True FALSE"),
        ("int", "-7 0x1f"),
        ("float", "1.5 .NaN -.inf +.Inf"),
    ];
    for (tag, _) in texts {
        for (kind, text) in
            texts.iter().flat_map(|(kind, texts)| texts.split(' ').map(move |text| (*kind, text)))
        {
            for text in [text.to_string(), format!("'{text}'")] {
                let reported = problems(&format!("limits: !!{tag} {text}"));
                // A whole number is also a float.
                let fits = tag == kind || (tag, kind) == ("float", "int");
                let refused = "1:9 the value does not match its tag; remove the tag";
                assert_eq!(reported == refused, !fits, "!!{tag} {text}: {reported}");
            }
        }
    }
}

/// A carriage return ends a line, with a line feed or alone.
#[test]
fn characters_that_yaml_forbids_are_named() {
    let bell = "found the character U+0007, which YAML allows only escaped";
    assert_eq!(problems("limits: []\n# \u{7}\n"), format!("2:3 {bell}"));
    assert_eq!(problems("limits: []\r\n# a\r# \u{7}\n"), format!("3:3 {bell}"));
    let bytes = "found a byte that is not UTF-8 at offset";
    assert_eq!(parse(b"limits: \xff").unwrap_err().to_string(), format!("{bytes} 8"));
    let own = policy("limits: []").own();
    let remote = parse_remote(b"limits: []\n# \xff", &own).unwrap_err();
    assert_eq!(remote.to_string(), format!("{bytes} 13"));
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

#[test]
fn hints_end_after_200_problems() {
    // Actors are read before the rules above them.
    let hints = |count: usize| {
        let actors: String = (0..count).map(|number| format!("a{number}: 1, ")).collect();
        let rule = "{actor: all, unit: secnd, rpu: 5, bursts: 1}";
        let text = format!("limits: [{{Url: /, rules: [{rule}]}}]\nactors: {{{actors}}}");
        problems(&text).lines().take(2).filter(|line| line.contains("did you mean")).count()
    };
    assert_eq!([hints(100), hints(200)], [2, 0]);
}

#[test]
fn rules_too_many_for_any_number_of_keys_are_refused() {
    let rule = "{actor: account, unit: day, rpu: 9, algo: SW, slices: 60, scope: local},";
    let rules = rule.repeat(2000);
    for keys in ["", ", keys: 1", ", keys: 100"] {
        let found = problems(&format!("{{limits: [{{Url: /, rules: [{rules}]}}]{keys}}}"));
        assert_eq!(
            found,
            "1:10 limits: with `keys: 1` the tables of a worker use up to 628 MiB, \
             allowed: at most 512 MiB; use fewer rules or slices"
        );
    }
}
