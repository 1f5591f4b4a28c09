//! Pasted configurations of ingress-nginx and nginx.

use std::rc::Rc;

use diana_import::{
    Counting, ImportResult, Importer, ModelDecision, Note, OriginalSite, SourceFiles, SourceText,
};
use diana_policy::tree::Tree;
use diana_replay::PlainRequest;
use serde_json::{Value, json};

/// The name of the original among the algorithms.
pub const NAME: &str = "original";

/// Most notes that are listed.
const LISTED: usize = 50;

/// A pasted text includes no files.
struct PastedOnly;

impl SourceFiles for PastedOnly {
    fn included(&self, _: &str, _: &str) -> Result<Vec<SourceText>, String> {
        Err("the page reads no files; paste its text instead".into())
    }
}

fn read(text: &str) -> ImportResult {
    let mut importer = Importer::new(None);
    importer.read(&SourceText { name: "pasted".into(), text: text.into() }, &PastedOnly);
    importer.convert(Counting::PerGateway)
}

/// The limits of a pasted text.
///
/// # Errors
/// If it has none of nginx.
pub fn site(text: &str) -> Result<OriginalSite<PlainRequest>, String> {
    let site = read(text).site();
    if site.is_empty() {
        return Err("the pasted text has no limits of ingress-nginx or nginx".into());
    }
    Ok(site)
}

/// The rules for a pasted text, what they lack, and a request to the first entry.
///
/// # Errors
/// If it has no limits.
pub fn converted(text: &str) -> Result<Value, String> {
    let result = read(text);
    let note = |note: &Note| format!("line {}: {}: {}", note.origin.line, note.about, note.reason);
    let list = |notes: &[Note]| notes.iter().take(LISTED).map(note).collect::<Vec<_>>();
    let Some(entry) = result.entries.first() else {
        let why = result.gaps.list().first().or(result.inert.list().first()).map(note);
        return Err(why.unwrap_or_else(|| "the pasted text has no limits".into()));
    };
    let path = entry.keys.iter().find(|(key, _)| *key == "Url").and_then(|(_, url)| first(url));
    let hosts = entry.keys.iter().find(|(key, _)| *key == "match").map(|(_, tree)| tree);
    let host = hosts.and_then(|tree| find(tree, "hosts")).and_then(first);
    let actors = entry.rules.iter().flat_map(|rule| &rule.actors);
    let headers: Vec<String> =
        actors.filter_map(|(_, tree)| find(tree, "header")?.text().map(Into::into)).collect();
    Ok(json!({
        "rules": result.document,
        "gaps": list(result.gaps.list()),
        "inert": list(result.inert.list()),
        "path": path.unwrap_or("/"),
        "host": host.unwrap_or("example.com").replace('*', "a"),
        "headers": headers,
    }))
}

/// The value of a key at any depth.
fn find<'t>(tree: &'t Tree, wanted: &str) -> Option<&'t Tree> {
    match tree {
        Tree::Map(pairs) => pairs
            .iter()
            .find_map(|(key, value)| if key == wanted { Some(value) } else { find(value, wanted) }),
        Tree::List(items) => items.iter().find_map(|item| find(item, wanted)),
        _ => None,
    }
}

/// A text, or the first of a list.
fn first(tree: &Tree) -> Option<&str> {
    match tree {
        Tree::List(items) => items.first()?.text(),
        tree => tree.text(),
    }
}

/// The decisions of the original about requests.
///
/// # Errors
/// If the text has no limits.
pub fn decisions(
    text: &str,
    visits: &[Rc<PlainRequest>],
) -> Result<Vec<(ModelDecision, Option<String>)>, String> {
    let mut site = site(text)?;
    let decide = |visit: &Rc<PlainRequest>| {
        let (decision, rule) = site.request(visit);
        (decision, rule.map(str::to_owned))
    };
    Ok(visits.iter().map(decide).collect())
}
