//! Reads the rules for a command.

use std::path::Path;

use diana_config::Reader;
use diana_policy::Policy;

use crate::exit::Exit;
use crate::input;
use crate::manifest::{self, FoundRules};
use crate::view::FilePart;

/// The only rules in a file, without problems.
///
/// # Errors
/// The exit code and the reason.
pub fn policy(path: &Path) -> Result<Policy, (Exit, String)> {
    let unusable = |why: String| (Exit::Unusable, why);
    let mut found: Vec<FoundRules> = Vec::new();
    for input in input::read(path) {
        let text = input.text.map_err(|why| unusable(format!("{}: {why}", input.name)))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let file = FilePart::file(input.name, text.into());
        for one in manifest::find(&file, text, !input.is_found, None) {
            if !found.iter().any(|other| is_same(other, &one)) {
                found.push(one);
            }
        }
    }
    let name = crate::text::plain(&path.to_string_lossy());
    if found.len() > 1 {
        let why = format!("{name}: found rules in {} places, allowed: one", found.len());
        return Err(unusable(why));
    }
    let Some(rules) = found.pop() else {
        return Err(unusable(format!("{name}: no rules found")));
    };
    let policy = rules.source.ok().and_then(|it| Reader::new(rules.module).read(&it).ok());
    let problems = || format!("{name}: the rules have problems; `diana check {name}` shows them");
    policy.map(|(policy, _)| policy).ok_or_else(|| (Exit::Problems, problems()))
}

/// Returns true if two places have equal rules, as listeners that count together do.
fn is_same(one: &FoundRules, other: &FoundRules) -> bool {
    match (&one.source, &other.source) {
        (Ok(one), Ok(other)) => one.documents() == other.documents(),
        _ => false,
    }
}
