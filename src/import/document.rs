//! Writes entries as a document.

use diana_config::Reader;
use diana_policy::tree::Tree;
use hashbrown::HashSet;

use crate::importer::Counting;
use crate::outcome::{ImportedEntry, ImportedRule, Notes};
use crate::traffic;

/// Maximum size of the entries in bytes. The filter reads at most 1 MiB.
const MOST_BYTES: usize = 1_000_000;

/// Maximum number of their nodes. The filter reads at most 200,000.
const MOST_NODES: usize = 180_000;

/// Maximum length of the name of a rule.
const LONGEST_NAME: usize = 64;

/// Collects entries, and writes them in the end.
pub(crate) struct DocumentWriter {
    /// The status of most refusals: that of the first rule.
    status: Option<u16>,
    actors: Vec<(String, Tree)>,
    names: HashSet<String>,
    entries: Vec<ImportedEntry>,
    text: String,
    nodes: usize,
    /// The number of entries that had no room, and the first of them.
    without_room: usize,
    first: Option<ImportedEntry>,
}

impl DocumentWriter {
    pub(crate) fn new() -> DocumentWriter {
        DocumentWriter {
            status: None,
            actors: Vec::new(),
            names: HashSet::new(),
            entries: Vec::new(),
            text: String::new(),
            nodes: 0,
            without_room: 0,
            first: None,
        }
    }

    /// Adds an entry. One that Diana refuses is left out, with a remark.
    pub(crate) fn add(&mut self, mut entry: ImportedEntry, gaps: &mut Notes) {
        if self.without_room > 0 {
            self.without_room += 1;
            return;
        }
        for rule in &mut entry.rules {
            self.complete(rule);
        }
        let text = self.entry(&entry);
        let nodes = entry_nodes(&entry);
        if self.text.len() + text.len() > MOST_BYTES || self.nodes + nodes > MOST_NODES {
            self.without_room = 1;
            self.first = Some(entry);
            return;
        }
        let alone = document(self.status, &actors_of(&entry), &text);
        if let Some(problem) = problem(&alone) {
            let reason = format!("no entry can express it: {problem}");
            gaps.add(entry.origin, entry.title, reason);
            return;
        }
        for actor in actors_of(&entry) {
            if !self.actors.contains(&actor) {
                self.actors.push(actor);
            }
        }
        self.text.push_str(&text);
        self.nodes += nodes;
        self.entries.push(entry);
    }

    /// Counts entries for which there is no room.
    pub(crate) fn skip(&mut self, entries: usize) {
        self.without_room += entries;
    }

    /// The document and its entries.
    pub(crate) fn finish(self, gaps: &mut Notes) -> (String, Vec<ImportedEntry>) {
        if let Some(first) = self.first {
            let reason = format!(
                "one document holds {} of the {} entries; import the files of some namespaces at a time, for a gateway each",
                self.entries.len(),
                self.entries.len() + self.without_room
            );
            gaps.add(first.origin, format!("{} and all later ones", first.title), reason);
        }
        (document(self.status, &self.actors, &self.text), self.entries)
    }

    /// Gives a rule its final name and keys.
    fn complete(&mut self, rule: &mut ImportedRule) {
        let status = *self.status.get_or_insert(rule.status);
        rule.name = self.free_name(&rule.name);
        if rule.status != status {
            let status = Tree::Int(i128::from(rule.status));
            rule.keys.push(("response", Tree::Map(vec![("status".into(), status)])));
        }
    }

    /// The wanted name in the alphabet of names, or the first free one with a number.
    fn free_name(&mut self, wanted: &str) -> String {
        let mut base = String::new();
        for letter in wanted.chars() {
            match letter.to_ascii_lowercase() {
                plain @ ('a'..='z' | '0'..='9' | '_') => base.push(plain),
                _ if base.is_empty() || base.ends_with('-') => {}
                _ => base.push('-'),
            }
        }
        // Room for a number of five digits.
        base.truncate(LONGEST_NAME - 6);
        let base = Some(base.trim_end_matches('-')).filter(|name| !name.is_empty());
        let base = base.unwrap_or("rule");
        let mut name = base.to_owned();
        let mut number = 2;
        while self.names.contains(&name) {
            name = format!("{base}-{number}");
            number += 1;
        }
        self.names.insert(name.clone());
        name
    }

    /// The text of an entry.
    fn entry(&self, entry: &ImportedEntry) -> String {
        let head = format!("{}, from {}", entry.title, entry.origin);
        let mut text = format!("  # {}\n", comment(&head));
        for (number, (key, value)) in entry.keys.iter().enumerate() {
            let begin = if number == 0 { "  - " } else { "    " };
            text.push_str(&format!("{begin}{key}: {}\n", flow(value)));
        }
        text.push_str("    rules:\n");
        for rule in &entry.rules {
            let differences = &rule.differences;
            for line in [
                format!("from {}", rule.origin),
                format!("refused requests: {}", differences.refused),
                format!("a count belongs to: {}", differences.belongs),
                format!("without a key: {}", differences.keyless),
            ]
            .into_iter()
            .chain(rule.comparison.iter().map(|it| format!("compared: {}", it.summary())))
            {
                text.push_str(&format!("      # {}\n", comment(&line)));
            }
            text.push_str(&format!("      - {}\n", flow(&rule_tree(rule))));
        }
        text
    }
}

/// Gives a rule of a fleet the total of all processes of the original, unless they count together.
pub(crate) fn count(rule: &mut ImportedRule, counting: Counting) {
    let is_global = rule.keys.iter().any(|(key, _)| *key == "scope");
    let (Counting::Fleet(processes), false) = (counting, is_global) else { return };
    // Each process lets one request pass without a wait.
    if let Some((_, algo)) = rule.keys.iter_mut().find(|(_, it)| it.text() == Some("leaky bucket"))
        && processes > 1
    {
        *algo = "token bucket".into();
        rule.keys.push(("burst", Tree::Int(1)));
    }
    let mut each = Vec::new();
    for (key, value) in &mut rule.keys {
        if let ("rpu" | "burst" | "in_flight" | "max_queue", Tree::Int(number)) = (*key, value) {
            each.push(format!("{key} {number}"));
            *number = number.saturating_mul(i128::from(processes));
        }
    }
    rule.keys.push(("scope", "global".into()));
    rule.processes = processes;
    let belongs = &mut rule.differences.belongs;
    *belongs = belongs.replace("in each gateway", "in all gateways");
    if processes > 1 {
        let each = each.join(", ");
        belongs.push_str(&format!("; of {processes} processes together, each with {each}"));
    }
}

/// A rule with its name and its actor.
fn rule_tree(rule: &ImportedRule) -> Tree {
    let mut names = rule.actors.iter().map(|(name, _)| Tree::Text(name.clone()));
    let actor = match (names.next(), names.len()) {
        (None, _) => "all".into(),
        (Some(name), 0) => name,
        (Some(first), _) => Tree::List([first].into_iter().chain(names).collect()),
    };
    let head = [("name".into(), Tree::Text(rule.name.clone())), ("actor".into(), actor)];
    let rest = rule.keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    Tree::Map(head.into_iter().chain(rest).collect())
}

fn actors_of(entry: &ImportedEntry) -> Vec<(String, Tree)> {
    let mut actors: Vec<(String, Tree)> = Vec::new();
    for actor in entry.rules.iter().flat_map(|rule| &rule.actors) {
        if !actors.contains(actor) {
            actors.push(actor.clone());
        }
    }
    actors
}

fn entry_nodes(entry: &ImportedEntry) -> usize {
    let keys = entry.keys.iter().map(|(_, value)| 1 + nodes(value)).sum::<usize>();
    keys + entry.rules.iter().map(|rule| 3 + nodes(&rule_tree(rule))).sum::<usize>()
}

/// The number of nodes of a tree, keys included, and one more for each 32 bytes of text.
fn nodes(tree: &Tree) -> usize {
    match tree {
        Tree::List(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Tree::Map(pairs) => {
            1 + pairs.iter().map(|(key, value)| 1 + key.len() / 32 + nodes(value)).sum::<usize>()
        }
        Tree::Text(text) => 1 + text.len() / 32,
        _ => 1,
    }
}

/// A whole document.
fn document(status: Option<u16>, actors: &[(String, Tree)], entries: &str) -> String {
    let mut text = String::new();
    if let Some(status) = status {
        text.push_str(&format!("response: {{status: {status}}}\n"));
    }
    if !actors.is_empty() {
        text.push_str("actors:\n");
        for (name, sources) in actors {
            text.push_str(&format!("  {}: {}\n", scalar(name), flow(sources)));
        }
    }
    match entries {
        "" => text.push_str("limits: []\n"),
        _ => text.push_str(&format!("limits:\n{entries}")),
    }
    text
}

/// The rules of a comparison, without conditions on requests but for exempt addresses, and for the
/// marks of requests of partial rules.
pub(crate) fn of_rules(rules: &[&ImportedRule]) -> String {
    let mut actors: Vec<(String, Tree)> = Vec::new();
    let mut text = String::new();
    for (number, rule) in rules.iter().enumerate() {
        let part = is_part(rules, number);
        if number == 0 || part || is_part(rules, number - 1) {
            text.push_str("  - Url: /\n");
            if part {
                let mark = traffic::part_header(number);
                text.push_str(&format!("    match: {{headers: {{{mark}: {{present: true}}}}}}\n"));
            }
            text.push_str("    rules:\n");
        }
        actors.extend(rule.actors.iter().cloned());
        let mut tree = enforced(rule, number);
        if let Tree::Map(pairs) = &mut tree {
            let addresses = rule.exempt.iter().cloned().map(Tree::Text).collect();
            if !rule.exempt.is_empty() {
                let except = Tree::Map(vec![("addresses".into(), Tree::List(addresses))]);
                pairs.push(("except".into(), except));
            }
        }
        text.push_str(&format!("      - {}\n", flow(&tree)));
    }
    actors.sort();
    actors.dedup();
    // Few callers, so small tables.
    format!("keys: 1000\n{}", document(None, &actors, &text))
}

/// A rule that refuses, and counts in one gateway.
fn enforced(rule: &ImportedRule, number: usize) -> Tree {
    let mut tree = rule_tree(rule);
    if let Tree::Map(pairs) = &mut tree {
        pairs.retain(|(key, _)| !["name", "shadow", "scope"].contains(&key.as_str()));
        pairs.push(("name".into(), Tree::Text(format!("rule-{number}"))));
    }
    tree
}

/// A rule of an entry with its conditions, and a document that refuses all requests of the entry.
pub(crate) fn of_entry(entry: &ImportedEntry, rule: &ImportedRule) -> [String; 2] {
    let mut keys = String::new();
    for (number, (key, value)) in entry.keys.iter().enumerate() {
        let begin = if number == 0 { "  - " } else { "    " };
        keys.push_str(&format!("{begin}{key}: {}\n", flow(value)));
    }
    let whole = |rule: &str, actors: &[(String, Tree)]| {
        document(None, actors, &format!("{keys}    rules:\n      - {rule}\n"))
    };
    let all = "{name: all, actor: all, unit: second, rpu: 0}";
    [whole(&flow(&enforced(rule, 0)), &rule.actors), whole(all, &[])]
}

/// Returns true if a rule of a comparison is for some of its requests only.
pub(crate) fn is_part(rules: &[&ImportedRule], number: usize) -> bool {
    rules.len() > 1 && rules.get(number).is_some_and(|rule| rule.is_partial)
}

/// Why `diana check` fails for a document.
fn problem(document: &str) -> Option<String> {
    let source = match diana_config::ConfigSource::read(document.as_bytes()) {
        Ok(source) => source,
        Err(problems) => return Some(problems.list().first()?.message.clone()),
    };
    match Reader::default().check(&source) {
        Ok((_, advice)) => advice.into_iter().find(|it| it.is_mistake).map(|it| it.message),
        Err(problems) => {
            let first = problems.list().first()?;
            Some(format!("{}: {}", first.path, first.message))
        }
    }
}

/// A tree in the flow style of YAML.
fn flow(tree: &Tree) -> String {
    match tree {
        Tree::Null => "null".into(),
        Tree::Bool(value) => value.to_string(),
        Tree::Int(value) => value.to_string(),
        Tree::Number(text) => text.clone(),
        Tree::Text(text) => scalar(text),
        Tree::List(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Tree::Map(pairs) => {
            let pair = |(key, value): &(String, Tree)| format!("{}: {}", scalar(key), flow(value));
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Words that YAML 1.1 reads as booleans or null.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A text, in quotes unless every reader takes it for the same text without them.
fn scalar(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./- ".contains(&byte);
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/');
    let is_word = WORDS.contains(&text.to_ascii_lowercase().as_str());
    if begins && !is_word && text.bytes().all(is_plain) && !text.ends_with(' ') {
        return text.into();
    }
    let quoted = serde_json::Value::String(text.into()).to_string();
    quoted.chars().map(printable).collect()
}

/// A character of a text in quotes or a comment, or its escape if YAML does not print it.
fn printable(letter: char) -> String {
    let is_hidden = letter.is_control()
        || matches!(letter, '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}');
    if is_hidden { format!("\\u{:04x}", u32::from(letter)) } else { letter.into() }
}

/// A text on one line, for a comment.
fn comment(text: &str) -> String {
    text.chars().map(printable).collect()
}
