//! What there is to say about rules.

use diana_config::problem::Position;

use crate::view::Part;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The filter refuses the configuration.
    Problem,
    /// It is allowed, and probably not meant.
    Advice,
}

impl Level {
    /// As every format but that for people calls it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Problem => "problem",
            Level::Advice => "advice",
        }
    }
}

/// One thing to say.
#[derive(Debug)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// Where it stands.
    pub part: Part,
    /// The positions in the part, the first one to blame; none if it is about the whole.
    pub positions: Vec<Position>,
    /// The path of the node to blame, such as `limits[0].rules[1].algo`, or empty.
    pub path: String,
    /// The rules that it is about, by name.
    pub rules: Vec<String>,
    /// What was found and what is allowed, or what is to be done.
    pub message: String,
}

impl Finding {
    /// Line and column in the file.
    pub fn in_file(&self) -> Option<Position> {
        let first = self.positions.first().map(|first| self.part.in_file(*first));
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

/// What was found in all files.
#[derive(Debug, Default)]
pub struct Findings {
    /// In the order of the files and their texts.
    pub list: Vec<Finding>,
    /// Problems beyond those.
    pub more: usize,
    /// Files that cannot be used, each with why.
    pub unusable: Vec<(String, String)>,
    /// How many places had rules.
    pub places: usize,
    /// How many rules are without problems.
    pub rules: usize,
}

impl Findings {
    /// How many findings are of a level.
    pub fn count(&self, level: Level) -> usize {
        let more = if level == Level::Problem { self.more } else { 0 };
        self.list.iter().filter(|finding| finding.level == level).count() + more
    }
}
