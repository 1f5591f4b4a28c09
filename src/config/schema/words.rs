//! What keys mean: the comments of the reference.

use crate::place::Source;
use crate::problem::Position;
use diana_core::tree::Tree;

const REFERENCE: &str = include_str!("../../../envoy/limits.yaml");

/// Comments that only say where another one stands.
const ELSEWHERE: &str = "as below";

/// Which mapping stands under a key of another one; lists and names of the operator's own lie between.
const UNDER: &[(&str, &str, &str)] = &[
    ("document", "limits", "entry"),
    ("document", "actors", "source"),
    ("document", "except", "except"),
    ("document", "response", "response"),
    ("document", "accepted", "accepted"),
    ("document", "redis", "redis"),
    ("document", "explain", "explain"),
    ("document", "admin", "admin"),
    ("document", "remote", "remote"),
    ("entry", "match", "match"),
    ("entry", "unless", "match"),
    ("match", "claims", "claims"),
    ("entry", "rules", "rule"),
    ("rule", "rpu", "limit"),
    ("rule", "plans", "plans"),
    ("rule", "ban", "ban"),
    ("rule", "quota", "quota"),
    ("rule", "hot", "hot"),
    ("rule", "count", "count"),
    ("rule", "cost", "cost"),
    ("settled_cost", "response", "told"),
];

/// The meanings of keys, by their mappings.
pub struct Words(Vec<(&'static str, String, String)>);

impl Words {
    /// Reads the reference.
    pub fn read() -> Words {
        let mut words = Words(Vec::new());
        if let Ok(source) = Source::read(REFERENCE.as_bytes()) {
            let root = source.documents().first().into_iter();
            root.for_each(|root| words.learn("document", root, &source, &[0]));
        }
        words
    }

    /// What a key of a mapping means.
    pub fn of(&self, mapping: &str, key: &str) -> Option<&str> {
        let is_it = |word: &&(&'static str, String, String)| word.0 == mapping && word.1 == key;
        self.0.iter().find(is_it).map(|(.., meaning)| meaning.as_str())
    }

    fn learn(&mut self, mapping: &'static str, tree: &Tree, source: &Source, walk: &[usize]) {
        match tree {
            Tree::List(items) => items.iter().enumerate().for_each(|(step, item)| {
                self.learn(mapping, item, source, &[walk, &[step]].concat());
            }),
            Tree::Map(pairs) => {
                // Two forms of one key.
                let settles = mapping == "cost" && pairs.iter().any(|(key, _)| key == "response");
                let mapping = if settles { "settled_cost" } else { mapping };
                for (step, (key, value)) in pairs.iter().enumerate() {
                    let walk = [walk, &[step]].concat();
                    if let Some(meaning) =
                        source.key_position(&walk).and_then(|at| comment(at, key))
                    {
                        self.0.push((mapping, key.clone(), meaning));
                    }
                    let under = UNDER.iter().find(|(of, known, _)| *of == mapping && known == key);
                    let under = under.map(|(.., under)| *under);
                    // Under `actors` stand names, which are no keys of a mapping.
                    let named = (mapping == "source").then_some("source");
                    under
                        .or(named)
                        .into_iter()
                        .for_each(|under| self.learn(under, value, source, &walk));
                }
            }
            _ => {}
        }
    }
}

/// The comment on a key: behind it, and in the lines that hold nothing else, unless another key comes first in its line.
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
