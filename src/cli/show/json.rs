//! One JSON object with all findings, for programs.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::finding::{Finding, FindingLevel, Findings};

/// Writes the object.
pub fn write(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    let unusable = findings.unusable.iter();
    let unusable: Vec<Value> =
        unusable.map(|(file, message)| json!({"file": file, "message": message})).collect();
    let object = json!({
        "findings": findings.list.iter().map(finding).collect::<Vec<Value>>(),
        "unusable": unusable,
        "problems": findings.count(FindingLevel::Problem),
        "mistakes": findings.count(FindingLevel::Mistake),
        "advice": findings.count(FindingLevel::Advice),
        "accepted": findings.accepted,
        "rules": findings.rules,
    });
    writeln!(out, "{object:#}")
}

fn finding(finding: &Finding) -> Value {
    let (begin, end) = finding.in_file().unzip();
    let ((line, column), (end_line, end_column)) = (begin.unzip(), end.unzip());
    json!({
        "id": finding.id,
        "level": finding.level.name(),
        "file": finding.part.view.file,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "path": finding.path,
        "rules": finding.rules,
        "message": finding.message,
    })
}
