//! Descriptions of keys: the comments of the reference.

use crate::document::DOCUMENT;
use crate::mapping::Allowed;
use crate::node_path::ConfigSource;
use diana_policy::tree::Tree;

const REFERENCE: &str = include_str!("../../../envoy/limits.yaml");

/// The descriptions of keys, by their mappings.
pub struct Words {
    meanings: Vec<(&'static str, &'static str, String)>,
    /// The last line with a key. A comment describes the first key of its line.
    line: usize,
}

impl Words {
    /// Reads the reference.
    pub fn read() -> Words {
        let mut words = Words { meanings: Vec::new(), line: 0 };
        if let Ok(source) = ConfigSource::read(REFERENCE.as_bytes()) {
            let root = source.documents().first().into_iter();
            root.for_each(|root| words.learn(&Allowed::Map(&DOCUMENT), root, &source, &[0]));
        }
        words
    }

    /// The description of a key of a mapping.
    pub fn of(&self, mapping: &str, key: &str) -> Option<&str> {
        let is_it =
            |word: &&(&'static str, &'static str, String)| word.0 == mapping && word.1 == key;
        self.meanings.iter().find(is_it).map(|(.., meaning)| meaning.as_str())
    }

    fn learn(&mut self, allowed: &Allowed, tree: &Tree, source: &ConfigSource, walk: &[usize]) {
        let learn = |words: &mut Words, allowed, (step, tree): (usize, _)| {
            words.learn(allowed, tree, source, &[walk, &[step]].concat());
        };
        match (allowed, tree) {
            (Allowed::Either(several), _) => {
                several.iter().for_each(|one| self.learn(one, tree, source, walk));
            }
            (Allowed::List(_, item), Tree::List(items)) => {
                items.iter().enumerate().for_each(|item_at| learn(self, item, item_at));
            }
            (Allowed::Named(_, value), Tree::Map(pairs)) => {
                let values = pairs.iter().map(|(_, tree)| tree);
                values.enumerate().for_each(|value_at| learn(self, value, value_at));
            }
            // Of several allowed mappings, the one that declares all keys.
            (Allowed::Map(mapping), Tree::Map(pairs)) => {
                let keys: Option<Vec<_>> = pairs.iter().map(|(key, _)| mapping.key(key)).collect();
                for (step, (key, (_, tree))) in keys.iter().flatten().zip(pairs).enumerate() {
                    let at = source.key_span_of(&[walk, &[step]].concat()).map(|(begin, _)| begin);
                    if let Some((line, _)) = at.filter(|(line, _)| *line > self.line) {
                        self.line = line;
                        let meaning = comment(line);
                        self.meanings.extend(meaning.map(|it| (mapping.name, key.name, it)));
                    }
                    learn(self, &key.allowed, (step, tree));
                }
            }
            _ => {}
        }
    }
}

/// The comment at the end of a line, and on following lines without other content.
fn comment(line: usize) -> Option<String> {
    let mut lines = REFERENCE.lines().skip(line.checked_sub(1)?);
    let (_, text) = lines.next()?.split_once(" # ")?;
    let mut meaning = text.trim().to_owned();
    for more in lines.map_while(|line| line.trim_start().strip_prefix("# ")) {
        meaning.push(' ');
        meaning.push_str(more.trim());
    }
    Some(meaning)
}
