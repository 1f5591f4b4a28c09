//! Workflow commands of GitHub Actions, which GitHub shows next to the lines. Source:
//! <https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>

use std::io::{self, Write};

use crate::finding::{FindingLevel, Findings};

/// Writes a command for each finding.
pub fn write(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    for finding in &findings.list {
        let command = match finding.level {
            FindingLevel::Problem | FindingLevel::Mistake => "error",
            FindingLevel::Advice => "warning",
        };
        let file = property(&finding.part.view.file);
        let place = finding.in_file();
        let place = place
            .map_or_else(String::new, |((line, column), _)| format!(",line={line},col={column}"));
        writeln!(out, "::{command} file={file}{place}::{}", data(&finding.line()))?;
    }
    for (file, why) in &findings.unusable {
        writeln!(out, "::error file={}::{}", property(file), data(why))?;
    }
    Ok(())
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
