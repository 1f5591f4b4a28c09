//! Descriptions of keys: the comments of the reference.

use crate::mapping::Allowed;
use crate::place::ConfigSource;
use crate::problem::Position;
use crate::table::DOCUMENT;
use diana_policy::tree::Tree;

const REFERENCE: &str = include_str!("../../../envoy/limits.yaml");

/// The beginning of comments that only refer to another one.
const ELSEWHERE: &str = "as below";

/// The descriptions of keys, by their mappings.
pub struct Words(Vec<(&'static str, &'static str, String)>);

impl Words {
    /// Reads the reference.
    pub fn read() -> Words {
        let mut words = Words(Vec::new());
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
        self.0.iter().find(is_it).map(|(.., meaning)| meaning.as_str())
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
                    let at = source.key_position(&[walk, &[step]].concat());
                    if let Some(meaning) = at.and_then(|at| comment(at, key.name)) {
                        self.0.push((mapping.name, key.name, meaning));
                    }
                    learn(self, &key.allowed, (step, tree));
                }
            }
            _ => {}
        }
    }
}

/// The comment on a key: at the end of its line, and on following lines without other content.
/// `None` if the key is not the first in its line.
fn comment((line, column): Position, key: &str) -> Option<String> {
    let mut lines = REFERENCE.lines().skip(line.checked_sub(1)?);
    let first = lines.next()?;
    let before: String = first.chars().take(column.checked_sub(1)?).collect();
    let is_first = before.chars().all(|letter| letter == ' ' || letter == '-');
    let (_, text) = first.split_once(" # ").filter(|_| is_first && first.contains(key))?;
    let mut meaning = text.trim().to_owned();
    if meaning.starts_with(ELSEWHERE) {
        return None;
    }
    for more in lines.map_while(|line| line.trim_start().strip_prefix("# ")) {
        meaning.push(' ');
        meaning.push_str(more.trim());
    }
    Some(meaning)
}
