//! The meaning of keys, and their defaults.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{policy, rule, with_rule};
use crate::support::documents::{assert_outcomes, outcome};
use diana_algorithm::Form;

/// Each line of a file is a part of a document: keys of a rule, keys of an entry besides `rules`, or
/// keys of a document besides `limits`. The transcript shows the differences from the defaults, which
/// have a heading of their own.
#[test]
fn keys_match_their_transcripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/it/config/meanings");
    assert_outcomes(folder, |file, heading, text| {
        let is_default = heading == "## defaults";
        let plain = match file {
            _ if is_default => BTreeMap::new(),
            "rule" => meaning(file, "rpu: 10"),
            "cost" => meaning(file, "rpu: 10, algo: W"),
            _ => meaning(file, ""),
        };
        let mut transcript = String::new();
        for step in text.lines() {
            let (line, mut lines) = (step.strip_prefix("> ").unwrap(), String::new());
            let mut meaning = meaning(file, line);
            // Those of rules are in their own file.
            meaning.retain(|path, _| !is_default || !path.starts_with("limits."));
            for (path, value) in meaning.iter().filter(|(path, it)| plain.get(*path) != Some(it)) {
                writeln!(lines, "{path}: {value}").unwrap();
            }
            for path in plain.keys().filter(|path| !meaning.contains_key(*path)) {
                writeln!(lines, "no {path}").unwrap();
            }
            transcript += &outcome(step, &lines);
        }
        transcript
    });
}

/// The values of a policy, by their paths.
fn meaning(file: &str, line: &str) -> BTreeMap<String, String> {
    let rules =
        if line.contains("rules:") { "" } else { ", rules: [{actor: all, unit: day, rpu: 1}]" };
    let own = if line.is_empty() { String::new() } else { format!(", {line}") };
    let mut values = BTreeMap::new();
    let debug = match file {
        "entry" => format!("{:?}", policy(&format!("{{Url: /{rules}{own}}}"))),
        "document" => format!("{:?}", policy(&format!("{{limits: [{{Url: /{rules}}}]{own}}}"))),
        _ => format!("{:?}", rule(&with_rule(line))),
    };
    collect("", &debug, &mut values);
    // A fingerprint differs with everything that makes a rule another one, a checksum with the text.
    let differs = |path: &str| path.ends_with("fingerprint") || path == "checksum";
    values.retain(|path, value| value != "None" && !differs(path));
    values
}

/// Collects the values of all structs in the debug format of one.
fn collect(path: &str, text: &str, values: &mut BTreeMap<String, String>) {
    let begin = text.find(['{', '[', '(', '"']).filter(|at| !text[*at..].starts_with('"'));
    let Some(begin) = begin.filter(|_| text.contains(" { ")) else {
        values.insert(path.into(), text.into());
        return;
    };
    let inner = &text[begin + 1..text.len() - 1];
    for (number, item) in items(inner).into_iter().enumerate() {
        let dot = if path.is_empty() { "" } else { "." };
        match &text[begin..=begin] {
            "{" => {
                let (name, value) = item.split_once(": ").unwrap();
                collect(&format!("{path}{dot}{name}"), value, values);
            }
            "[" => collect(&format!("{path}{dot}{number}"), item, values),
            _ => collect(path, item, values),
        }
    }
}

/// The parts of a text between commas outside brackets and quotes.
fn items(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped, mut start) = (0, false, false, 0);
    let mut items = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                items.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(text[start..].trim());
    items.retain(|item| !item.is_empty());
    items
}

#[test]
fn daily_quota_is_sized_by_requests() {
    let shape = |fields: &str| {
        let fields =
            format!("unit: day, algo: W, scope: local, quota: {{accounts: 1000}}, {fields}");
        rule(&with_rule(&fields)).daily.unwrap()
    };
    let counts = shape("rpu: 600, cost: 200");
    assert_eq!(counts.layout(), shape("rpu: 3").layout());
    assert_ne!(counts.layout(), shape("rpu: 600").layout());
}

/// Every number makes it another ban, and so does another rule.
#[test]
fn bans_have_fingerprints() {
    let ban = |more: &str| {
        let fields = format!("rpu: 10, ban: {{after: 5, within: 100ms, for: 1m{more}}}");
        rule(&with_rule(&fields)).ban.unwrap()
    };
    let fingerprints =
        ["", ", max: 2m", ", max: 2m, halve_after: 1m"].map(|more| ban(more).fingerprint(1));
    assert!(fingerprints[0] != fingerprints[1] && fingerprints[1] != fingerprints[2]);
    assert_ne!(fingerprints[0], ban("").fingerprint(2));
}

#[test]
fn every_key_of_an_algorithm_sets_its_quota() {
    for entry in diana_algorithm::REGISTRY {
        for key in entry.keys {
            let base = format!("algo: {}, unit: second, rpu: 50", entry.long);
            let (text, value) = match key.form {
                Form::Number => ("9", 9),
                Form::Duration => ("900ms", 900_000),
            };
            // In a token bucket it is allowed only together with `max_delay`.
            let base =
                if key.name == "max_queue" { format!("{base}, max_delay: 1s") } else { base };
            let mut with = rule(&with_rule(&format!("{base}, {}: {text}", key.name)));
            assert_eq!(*(key.field)(&mut with.quota), Some(value), "{}", key.name);
            assert_ne!(rule(&with_rule(&base)).quota, with.quota, "{}", key.name);
        }
    }
}

#[test]
fn tables_fit_into_a_vm() {
    let rules =
        "{actor: account, unit: day, rpu: 9, algo: SW, slices: 60, scope: local},".repeat(40);
    let with = |keys: &str| format!("{{limits: [{{Url: /, rules: [{rules}]}}]{keys}}}");
    // The default is reduced. A configured number is a problem, which names a number that fits.
    assert!(policy(&with("")).keys < 100_000);
    let problems = diana_config::Reader::default()
        .policy(with(", keys: 100000").as_bytes())
        .unwrap_err()
        .to_string();
    assert!(problems.contains("keys: with `keys: 100000`"), "{problems}");
    let fits = problems.split("use `keys: ").nth(1).and_then(|rest| rest.split('`').next());
    let fits: usize = fits.unwrap().parse().unwrap();
    let policy = policy(&with(&format!(", keys: {fits}")));
    let megabytes = |keys| diana_limiter::sizing::memory(&policy.limits, keys).worker >> 20;
    assert!(policy.limits[0].rules.len() == 40 && megabytes(fits) < 512);
    assert!(megabytes(fits * 10 / 9 + 2) >= 512, "{fits} gives away more than a tenth");
}
