//! Where a node stands in the documents.

use crate::tree::Tree;

/// A walk from the root: the number of the document, then which child at each level.
///
/// The order of places is the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The walk.
    pub steps: Vec<usize>,
    /// What of the node that it leads to is meant.
    pub part: Part,
}

/// What of a node is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The key that it stands under.
    Key,
    /// The node itself.
    Value,
    /// A key that the mapping lacks.
    Missing(&'static str),
}

impl Place {
    /// The place as a reader names it, such as `limits[0].rules[1].algo`.
    pub fn path(&self, documents: &[Tree]) -> String {
        let mut path = String::new();
        let mut steps = self.steps.iter();
        let document = steps.next().copied().unwrap_or_default();
        if documents.len() > 1 {
            path = format!("document[{document}]");
        }
        let mut tree = documents.get(document);
        for &step in steps {
            tree = match tree {
                Some(Tree::List(items)) => {
                    path.push_str(&format!("[{step}]"));
                    items.get(step)
                }
                Some(Tree::Map(pairs)) => pairs.get(step).map(|(key, value)| {
                    push_key(&mut path, key);
                    value
                }),
                _ => None,
            };
        }
        if let Part::Missing(key) = self.part {
            push_key(&mut path, key);
        }
        path
    }
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if (1..=60).contains(&key.len()) && key.bytes().all(plain) {
        path.push_str(key);
    } else {
        path.push_str(&Tree::Text(key.into()).found());
    }
}
