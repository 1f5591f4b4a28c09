//! SARIF 2.1.0, which code hosts show next to the lines. Source:
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>

use std::io::{self, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::finding::{Finding, FindingLevel, Findings};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Writes the log of one run.
pub fn write(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    let mut ids: Vec<(&str, &str)> = findings.list.iter().map(|it| (it.id, kind(it))).collect();
    ids.sort_unstable();
    ids.dedup_by_key(|(id, _)| *id);
    let rules = ids.iter().map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}}));
    let unusable = findings.unusable.iter().map(
        |(file, why)| json!({"level": "error", "message": {"text": format!("{file}: {why}")}}),
    );
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "diana", "version": env!("CARGO_PKG_VERSION"), "rules": rules.collect::<Vec<Value>>()}},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": findings.unusable.is_empty(),
                "toolExecutionNotifications": unusable.collect::<Vec<Value>>(),
            }],
            "results": findings.list.iter().map(result).collect::<Vec<Value>>(),
        }],
    });
    writeln!(out, "{log:#}")
}

/// The meaning of its level.
fn kind(finding: &Finding) -> &'static str {
    match finding.level {
        FindingLevel::Problem => "The filter rejects the configuration",
        FindingLevel::Mistake => "The filter does not do what the configuration appears to say",
        FindingLevel::Advice => "Allowed, but probably unintended",
    }
}

fn result(finding: &Finding) -> Value {
    let level = match finding.level {
        FindingLevel::Problem | FindingLevel::Mistake => "error",
        FindingLevel::Advice => "warning",
    };
    let mut place = json!({"artifactLocation": {"uri": uri(&finding.part.view.file)}});
    if let (Some((begin, end)), Some(place)) = (finding.in_file(), place.as_object_mut()) {
        let region = json!({"startLine": begin.0, "startColumn": begin.1, "endLine": end.0, "endColumn": end.1});
        place.insert("region".into(), region);
    }
    json!({
        "ruleId": finding.id,
        "level": level,
        "message": {"text": finding.line()},
        "locations": [{"physicalLocation": place}],
    })
}

/// A path as a relative reference.
fn uri(file: &str) -> String {
    const ENCODED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(file, ENCODED).to_string()
}
