//! The forms that a document may have.

use std::fmt::Write;

use super::{messages, parse, policy};
use crate::support::documents::{assert_outcomes, outcome};
use diana_policy::{BodyPiece, Policy};

/// The transcript of a document has its rules, or its problems.
#[test]
fn documents_match_their_transcripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/it/config/forms");
    assert_outcomes(folder, |_, _, text| match parse(text.as_bytes()) {
        Ok(policy) => outcome("", &rules(&policy)),
        Err(_) => outcome("", &messages(text)),
    });
}

fn rules(policy: &Policy) -> String {
    let mut lines = String::new();
    for limit in &policy.limits {
        let path = String::from_utf8_lossy(limit.urls[0].path());
        for rule in &limit.rules {
            let (name, actor, rpu) = (&rule.name, &rule.actor, rule.quota.rpu);
            writeln!(lines, "{path} {name} {actor:?} {rpu} {} {:?}", rule.algo, rule.scope)
                .unwrap();
        }
    }
    lines
}

const SEED: &str = "\
Url: /
rules:
 - actor: device
   unit: second
   rpu: 10
   algo: TB
   scope: global
 - actor: all
   unit: second
   rpu: 50
   algo: W
   scope: local
";

#[test]
fn any_line_ending_and_indentation_is_read() {
    let expected = rules(&policy(SEED));
    for text in [
        SEED.trim_end(),
        &SEED.replace('\n', "\r\n"),
        &SEED.replace('\n', "\r"),
        &format!("\u{feff}{SEED}"),
        "{\"Url\":\"/\",\"rules\":[\n\t\t{\"actor\":\"device\",\"unit\":\"second\",\"rpu\":10,\"scope\":\"global\"},\n\t\t\
         {\"actor\":\"all\",\"unit\":\"second\",\"rpu\":50,\"algo\":\"W\",\"scope\":\"local\"}]}",
    ] {
        assert_eq!(rules(&policy(text)), expected, "{text:?}");
    }
    for (end, body) in [("|\n  a\n  b", "a\nb"), (">-\n  a\n  b\n", "a b")] {
        let text = format!("{SEED}response:\n body: {end}");
        let read = &policy(&text).limits[0].rules[0].response.body;
        assert_eq!(*read, [BodyPiece::Text(body.into())], "{text}");
    }
}

/// However long their parts are.
#[test]
fn names_are_short_and_unique() {
    let url = "/very".repeat(40);
    let actor = "a".repeat(64);
    let rule = format!("{{actor: [{actor}, account], unit: second, rpu: 5}}");
    let rules = vec![rule; 300].join(", ");
    let text = format!(
        "{{limits: [{{Url: {url}, rules: [{rules}]}}, {{Url: {url}/x, rules: [{{actor: all, unit: second, rpu: 5}}]}}],
          actors: {{{actor}: [{{query: q}}]}}}}"
    );
    let policy = policy(&text);
    let rules = policy.limits.into_iter().flat_map(|limit| limit.rules);
    let names: Vec<String> = rules.map(|rule| rule.name).collect();
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!((names.len(), unique.len()), (301, 301));
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    assert!(names[0].starts_with("very-very") && names[0].contains("-aaaa"), "{}", names[0]);
    assert!(names[0].ends_with("-second-tb") && names[300].ends_with("-all-second-tb"));
}
