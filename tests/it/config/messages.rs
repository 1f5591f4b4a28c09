//! What is reported about each document in `documents/`: its problems, or its warnings if it has none.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use diana_config::problem::Problems;
use diana_config::{parse, parse_remote};
use diana_core::policy::Policy;
use insta::{Settings, assert_snapshot};

use super::{policy, problems};

/// A line of a file that begins with this begins another document.
const HEADING: &str = "##";

/// The snapshot beside each file lists the report of each of its documents, by the lines of the file.
#[test]
fn documents_are_reported_with_all_problems() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/config/documents");
    let own = policy("limits: []\nmark: X-Mark").own();
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(&folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        let mut files: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "yaml")) {
            let name = file.file_stem().and_then(|name| name.to_str()).unwrap();
            let text = fs::read_to_string(file).unwrap();
            let is_remote = name == "rules_of_a_centre";
            let report = report(&text, |document| {
                let bytes = document.as_bytes();
                if is_remote { parse_remote(bytes, &own) } else { parse(bytes) }
            });
            assert_snapshot!(name, report);
        }
    });
}

/// The headings of a file, and below each what is reported about its document.
fn report(file: &str, read: impl Fn(&str) -> Result<Policy, Problems>) -> String {
    let mut report = String::new();
    let mut above = 0;
    for document in documents(file) {
        let (heading, body) = document.split_once('\n').unwrap();
        writeln!(report, "{heading}").unwrap();
        above += 1;
        match read(body) {
            Ok(policy) if policy.warnings.is_empty() => report += "no problems\n",
            Ok(policy) => {
                for warning in policy.warnings {
                    writeln!(report, "warning: {warning}").unwrap();
                }
            }
            Err(problems) => {
                assert_eq!(problems.more(), 0, "{heading}: write fewer problems in one document");
                for problem in problems.list() {
                    let mut problem = problem.clone();
                    problem.position =
                        problem.position.map(|(line, column)| (line + above, column));
                    writeln!(report, "{problem}").unwrap();
                }
            }
        }
        above += body.lines().count();
    }
    report
}

/// The documents of a file, each with its heading.
fn documents(file: &str) -> Vec<String> {
    assert!(file.starts_with(HEADING), "the first line is a heading");
    let mut documents: Vec<String> = Vec::new();
    for line in file.lines() {
        if line.starts_with(HEADING) {
            documents.push(String::new());
        }
        if let Some(document) = documents.last_mut() {
            writeln!(document, "{line}").unwrap();
        }
    }
    documents
}

#[test]
fn tags_say_what_stands_there() {
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
                let said = problems(&format!("limits: !!{tag} {text}"));
                // A whole number is one of the others, too.
                let fits = tag == kind || (tag, kind) == ("float", "int");
                let refused = "1:9 found another value than its tag says; leave the tag out";
                assert_eq!(said == refused, !fits, "!!{tag} {text}: {said}");
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
fn words_are_looked_up_until_200_problems_are_found() {
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
fn rules_for_which_no_number_of_keys_would_do() {
    let rule = "{actor: account, unit: day, rpu: 9, algo: SW, slices: 60, scope: local},";
    let rules = rule.repeat(2000);
    for keys in ["", ", keys: 1", ", keys: 100"] {
        let found = problems(&format!("{{limits: [{{Url: /, rules: [{rules}]}}]{keys}}}"));
        assert_eq!(
            found,
            "1:10 limits: with `1` callers in each rule the tables of a worker could take 628 MiB, \
             allowed: at most 512 MiB; write fewer rules or slices"
        );
    }
}
