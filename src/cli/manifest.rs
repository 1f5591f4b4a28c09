//! Rules in files: plain, or in the manifests of a proxy.

mod walk;

use diana_config::problem::Problem;
use diana_config::{ConfigSource, outline};
use diana_policy::tree::Tree;

use crate::view::FilePart;
use walk::{Candidate, Holds};

/// Maximum nesting of texts in texts: a ConfigMap with Envoy's configuration with rules.
const MAX_DEPTH: usize = 3;

/// Rules found in a file.
#[derive(Debug)]
pub struct FoundRules {
    /// Their position.
    pub part: FilePart,
    /// The rules, or their problems.
    pub source: Result<ConfigSource, Vec<Problem>>,
}

/// All rules in a file. A file that the user named (`is_named`), and that is not a manifest, must
/// consist of rules.
pub fn find(part: &FilePart, text: &str, is_named: bool) -> Vec<FoundRules> {
    find_nested(part, text, is_named, MAX_DEPTH)
}

fn find_nested(part: &FilePart, text: &str, is_named: bool, depth: usize) -> Vec<FoundRules> {
    let source = match ConfigSource::read(text.as_bytes()) {
        Ok(source) => source,
        Err(problems) if is_named || mentions_rules(text) => {
            return vec![FoundRules { part: part.clone(), source: Err(problems.list().to_vec()) }];
        }
        Err(_) => return Vec::new(),
    };
    let documents = source.documents();
    if !documents.iter().any(walk::is_manifest) {
        let is_rules = is_named || documents.iter().any(outline::looks_like_rules);
        let found = is_rules.then_some(FoundRules { part: part.clone(), source: Ok(source) });
        return found.into_iter().collect();
    }
    let mut found = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        if walk::is_manifest(document) {
            let candidates = walk::candidates(document, number);
            found.extend(candidates.into_iter().flat_map(|one| inner(part, &source, &one, depth)));
        } else if outline::looks_like_rules(document) {
            let source = source.part(&[number]).ok_or_else(Vec::new);
            found.push(FoundRules { part: part.clone(), source });
        }
    }
    found
}

/// The rules at a place of a manifest.
fn inner(
    part: &FilePart,
    source: &ConfigSource,
    place: &Candidate<'_>,
    depth: usize,
) -> Vec<FoundRules> {
    let is_rules = place.is_ours || outline::looks_like_rules(place.tree);
    match (place.holds, place.tree) {
        (Holds::Text, Tree::Text(text)) => {
            let Some(begins) = source.position_of(&place.steps).filter(|_| depth > 0) else {
                return Vec::new();
            };
            find_nested(&part.scalar(begins, text), text, place.is_ours, depth - 1)
        }
        (Holds::Tree, Tree::Map(_) | Tree::List(_)) if is_rules => {
            let source = source.part(&place.steps).ok_or_else(Vec::new);
            vec![FoundRules { part: part.clone(), source }]
        }
        _ => Vec::new(),
    }
}

/// Returns true if an unparsable text was probably meant to be rules.
fn mentions_rules(text: &str) -> bool {
    let has =
        |key: &str| text.lines().any(|line| line.trim_start_matches([' ', '-']).starts_with(key));
    has("limits:") || has("rules:") && (has("Url:") || has("url:"))
}
