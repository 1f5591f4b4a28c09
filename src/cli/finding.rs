//! Findings about rules.

use diana_config::problem::{NodeSpan, Position};

use crate::view::FilePart;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingLevel {
    /// The filter refuses the configuration.
    Problem,
    /// The filter accepts it, but applies it differently from its text.
    Mistake,
    /// It is allowed, and probably unintended.
    Advice,
}

impl FindingLevel {
    /// Its name in all formats except text.
    pub fn name(self) -> &'static str {
        match self {
            FindingLevel::Problem => "problem",
            FindingLevel::Mistake => "mistake",
            FindingLevel::Advice => "advice",
        }
    }
}

/// A problem, or a piece of advice.
#[derive(Debug)]
pub struct Finding {
    /// The kind of the problem or of the setting.
    pub id: &'static str,
    /// Its severity.
    pub level: FindingLevel,
    /// Its file, or the part of a file.
    pub part: FilePart,
    /// The begin of each node in the part, and its end if it is known; the main one first. Empty if
    /// the finding concerns the whole part.
    pub spans: Vec<(Position, Option<Position>)>,
    /// The path of the node, such as `limits[0].rules[1].algo`, or empty.
    pub path: String,
    /// The names of the rules concerned.
    pub rules: Vec<String>,
    /// What was found and what is allowed, or how to fix it.
    pub message: String,
}

impl Finding {
    /// Line and column in the file, of the begin and of the end: that after the last character.
    pub fn in_file(&self) -> Option<NodeSpan> {
        let first = self.spans.first().map(|(begin, end)| self.part.in_file(*begin, *end));
        first.or(self.part.view.within)
    }

    /// The message with its path or its rules, on one line.
    pub fn line(&self) -> String {
        let rules = if self.rules.is_empty() {
            String::new()
        } else {
            format!(": {}", self.rules.join(", "))
        };
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        format!("{path}{}{rules}", self.message)
    }
}

/// The findings in all files.
#[derive(Debug, Default)]
pub struct Findings {
    /// In the order of the files and their texts.
    pub list: Vec<Finding>,
    /// The number of findings that were accepted.
    pub accepted: usize,
    /// The number of further problems.
    pub more: usize,
    /// Unusable files, each with the reason.
    pub unusable: Vec<(String, String)>,
    /// The number of places with rules.
    pub places: usize,
    /// The number of rules without problems.
    pub rules: usize,
}

impl Findings {
    /// Removes the advice with one of these identifiers.
    pub fn accept(&mut self, ids: &[String]) {
        let before = self.list.len();
        self.list.retain(|finding| {
            finding.level != FindingLevel::Advice || ids.iter().all(|id| *id != finding.id)
        });
        self.accepted = before - self.list.len();
    }

    /// The number of findings with this severity.
    pub fn count(&self, level: FindingLevel) -> usize {
        let more = if level == FindingLevel::Problem { self.more } else { 0 };
        self.list.iter().filter(|finding| finding.level == level).count() + more
    }
}
