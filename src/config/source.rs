//! What a configuration was read from.

use super::place::{Part, Place};
use super::problem::Position;
use crate::tree::Tree;

/// The documents of a text.
#[derive(Debug)]
pub struct Source {
    /// The tree of each.
    pub documents: Vec<Tree>,
    /// Where the nodes of all of them stand, in their order, a key just before its value; nothing
    /// if there is no text.
    pub positions: Vec<Position>,
}

impl Source {
    /// Line and column of `place`.
    pub fn position(&self, place: &Place) -> Option<Position> {
        let (&document, steps) = place.steps.split_first()?;
        let mut index: usize = self.documents.iter().take(document).map(nodes).sum();
        let mut tree = self.documents.get(document)?;
        let mut key = None;
        for &step in steps {
            index += 1;
            (tree, key) = match tree {
                Tree::List(items) => {
                    index += items.iter().take(step).map(nodes).sum::<usize>();
                    (items.get(step)?, None)
                }
                Tree::Map(pairs) => {
                    let key = index + pairs.iter().take(step).map(pair).sum::<usize>();
                    index = key + 1;
                    (&pairs.get(step)?.1, Some(key))
                }
                _ => return None,
            };
        }
        let blamed = key.filter(|_| place.part == Part::Key).unwrap_or(index);
        self.positions.get(blamed).copied()
    }
}

/// How many nodes a tree has.
fn nodes(tree: &Tree) -> usize {
    match tree {
        Tree::List(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Tree::Map(pairs) => 1 + pairs.iter().map(pair).sum::<usize>(),
        _ => 1,
    }
}

fn pair((_, value): &(String, Tree)) -> usize {
    1 + nodes(value)
}
