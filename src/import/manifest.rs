//! Manifests: the objects of a text, each with the lines of its nodes.

use std::rc::Rc;

use diana_config::ConfigSource;
use diana_policy::tree::Tree;

use crate::source::{Origin, SourceText};

#[cfg(test)]
mod tests;

/// An object of a text: a document, or an item of a list.
#[derive(Debug)]
pub struct ManifestObject {
    file: Rc<str>,
    /// The number of lines above the document.
    above: usize,
    source: ConfigSource,
}

impl ManifestObject {
    /// Its outermost node.
    pub fn root(&self) -> ManifestNode<'_> {
        const NOTHING: &Tree = &Tree::Null;
        let tree = self.source.documents().first().unwrap_or(NOTHING);
        ManifestNode { manifest: self, tree, steps: vec![0] }
    }
}

/// A node of an object.
#[derive(Debug, Clone)]
pub struct ManifestNode<'m> {
    manifest: &'m ManifestObject,
    tree: &'m Tree,
    steps: Vec<usize>,
}

impl<'m> ManifestNode<'m> {
    /// The plain tree.
    pub fn tree(&self) -> &'m Tree {
        self.tree
    }

    /// Its line: that of its key, if it has one.
    pub fn origin(&self) -> Origin {
        let ManifestObject { file, above, source } = self.manifest;
        let span = source.key_span_of(&self.steps).or_else(|| source.span_of(&self.steps));
        let line = span.map_or(1, |((line, _), _)| line);
        Origin { file: file.clone(), line: above + line }
    }

    /// The value of a key, unless it is null.
    pub fn get(&self, key: &str) -> Option<ManifestNode<'m>> {
        let Tree::Map(pairs) = self.tree else { return None };
        let position = pairs.iter().position(|(name, _)| name == key)?;
        let (_, tree) = pairs.get(position)?;
        (*tree != Tree::Null).then(|| self.child(position, tree))
    }

    /// The node at keys separated by dots.
    pub fn descend(&self, path: &str) -> Option<ManifestNode<'m>> {
        path.split('.').try_fold(self.clone(), |node, key| node.get(key))
    }

    /// The text of a key.
    pub fn text_of(&self, key: &str) -> Option<&'m str> {
        self.get(key)?.tree.text()
    }

    /// The items of a list. None if the node is no list.
    pub fn items(&self) -> Vec<ManifestNode<'m>> {
        let Tree::List(items) = self.tree else { return Vec::new() };
        items.iter().enumerate().map(|(position, tree)| self.child(position, tree)).collect()
    }

    /// The keys and values of a mapping. None if the node is no mapping.
    pub fn pairs(&self) -> Vec<(&'m str, ManifestNode<'m>)> {
        let Tree::Map(pairs) = self.tree else { return Vec::new() };
        let pairs = pairs.iter().enumerate();
        pairs.map(|(at, (key, tree))| (key.as_str(), self.child(at, tree))).collect()
    }

    fn child(&self, position: usize, tree: &'m Tree) -> ManifestNode<'m> {
        let steps = [self.steps.as_slice(), &[position]].concat();
        ManifestNode { manifest: self.manifest, tree, steps }
    }
}

/// Ends of the names of files that may have limits.
const FILES: [&str; 4] = [".conf", ".yaml", ".yml", ".json"];

/// The files in a ConfigMap, each with the place of its key.
pub fn inner_files(object: &ManifestObject) -> Vec<(Origin, &str)> {
    let root = object.root();
    let data = root.get("data").filter(|_| root.text_of("kind") == Some("ConfigMap"));
    let files = data.map(|data| data.pairs()).unwrap_or_default().into_iter();
    let files = files.filter(|(key, _)| FILES.iter().any(|end| key.ends_with(end)));
    files.filter_map(|(_, node)| Some((node.origin(), node.tree().text()?))).collect()
}

/// Passes each object of a text to `visit`, and the line and message of each syntax error to
/// `fault`. A document with an error does not affect the others.
pub fn read(
    text: &SourceText,
    visit: &mut dyn FnMut(&ManifestObject),
    fault: &mut dyn FnMut(Origin, String),
) {
    let marked = text.text.strip_prefix('\u{feff}');
    for (above, part) in documents(marked.unwrap_or(&text.text)) {
        let read = ConfigSource::each_object(part, &mut |source| {
            let is_empty = source.documents().first().is_none_or(|tree| *tree == Tree::Null);
            if !is_empty {
                visit(&ManifestObject { file: text.name.clone(), above, source });
            }
        });
        let Err(problems) = read else { continue };
        for problem in problems.list().iter().filter(|problem| problem.path.is_empty()).take(1) {
            let line = above + problem.position.map_or(1, |(line, _)| line);
            let origin = Origin { file: text.name.clone(), line };
            fault(origin, template(part).unwrap_or_else(|| problem.message.clone()));
        }
    }
}

/// The message about a template that has not been rendered.
fn template(part: &str) -> Option<String> {
    let is_template = part.contains("{{") && part.contains("}}");
    is_template.then(|| {
        "found a template (`{{`), which is no YAML; render it first, as by `helm template`".into()
    })
}

/// The documents of a stream, each with the number of lines above it. Within a document no line can
/// begin with `---`, not even in a text.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut begin, mut at, mut above, mut line) = (0, 0, 0, 0);
    for whole in text.split_inclusive('\n') {
        let is_marker = whole
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if is_marker && at > begin {
            found.extend(text.get(begin..at).map(|part| (above, part)));
            (begin, above) = (at, line);
        }
        at += whole.len();
        line += 1;
    }
    found.extend(text.get(begin..).map(|part| (above, part)));
    found
}
