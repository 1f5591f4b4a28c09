//! The configuration: the meaning of documents, and the reports about invalid ones.

mod bounds;
mod fingerprint;
mod forms;
mod hostile;
mod meaning;
mod messages;
mod mutation;
mod pipe;
mod protobuf;
mod reference;
mod remote;
mod resource;

use diana_config::Reader;
use diana_config::problem::Problems;
use diana_policy::remote::Own;
use diana_policy::{Policy, Rule};

/// Reads the configuration of a gateway.
fn parse(bytes: &[u8]) -> Result<Policy, Problems> {
    Reader::default().policy(bytes)
}

/// Reads a document from a configuration server.
fn parse_remote(bytes: &[u8], own: &Own) -> Result<Policy, Problems> {
    Reader::remote(own.clone()).policy(bytes)
}

/// The policy of a valid document.
pub fn policy(text: &str) -> Policy {
    parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}\n\n{text}"))
}

/// The only rule of a document.
fn rule(text: &str) -> Rule {
    let mut policy = policy(text);
    let mut rules = policy.limits.remove(0).rules;
    assert_eq!(rules.len(), 1);
    rules.remove(0)
}

/// The report about a document, with lines and columns.
fn problems(text: &str) -> String {
    parse(text.as_bytes()).expect_err("a document with problems").to_string()
}

/// The report about a document, without lines and columns.
fn messages(text: &str) -> String {
    let problems = parse(text.as_bytes()).expect_err("a document with problems");
    let lines = problems.list().iter().map(|problem| {
        let place = if problem.path.is_empty() { "" } else { ": " };
        format!("{}{place}{}", problem.path, problem.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A document with one rule: `fields`, and the missing required keys.
fn with_rule(fields: &str) -> String {
    let needed = [("actor", "device"), ("unit", "second"), ("rpu", "10")];
    let missing = needed.iter().filter(|(key, _)| !fields.contains(&format!("{key}:")));
    let rest: String = missing.map(|(key, value)| format!(", {key}: {value}")).collect();
    format!("limits: [{{Url: /, rules: [{{{fields}{rest}}}]}}]")
}
