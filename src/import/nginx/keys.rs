//! Keys of zones: variables, and the maps that choose them.

use std::net::IpAddr;

use diana_policy::tree::Tree;
use hashbrown::HashMap;
use ipnet::IpNet;

use super::syntax::Directive;
use super::variables;
use crate::key::KeySource;
use crate::regex::literal;

/// Maximum number of maps that refer to each other.
const MAX_DEPTH: usize = 4;

/// The key of a zone.
#[derive(Debug, Default, Clone)]
pub(crate) struct ZoneKey {
    /// The values that form the key. None is a constant.
    pub(crate) sources: Vec<KeySource>,
    /// Whether a constant text is a part of it, so that it is never empty.
    pub(crate) has_text: bool,
    /// Blocks of conditions of which one must hold; none if there are none.
    pub(crate) matching: Vec<(String, Tree)>,
    /// Blocks of conditions of which none may hold.
    pub(crate) unless: Vec<(String, Tree)>,
    /// Addresses without a key.
    pub(crate) exempt: Vec<String>,
}

/// The `map` and `geo` blocks, by their variables.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    maps: HashMap<String, ValueMap>,
}

#[derive(Debug)]
struct ValueMap {
    is_geo: bool,
    /// The variable that chooses.
    source: String,
    default: String,
    /// Each value, and its result.
    entries: Vec<(String, String)>,
    /// The first directive in it that is not supported.
    special: Option<String>,
}

impl Maps {
    /// Adds a `map` or `geo` block.
    pub(crate) fn add(&mut self, directive: &Directive) {
        let is_geo = directive.name() == "geo";
        let (source, name) = match directive.arguments() {
            [name] if is_geo => ("remote_addr", name.as_str()),
            [source, name] => (source.trim_start_matches('$'), name.as_str()),
            _ => return,
        };
        let mut map = ValueMap {
            is_geo,
            source: source.into(),
            default: String::new(),
            entries: Vec::new(),
            special: None,
        };
        for entry in &directive.block {
            match entry.words.as_slice() {
                [key, value] if key == "default" => map.default = value.clone(),
                [key] if key == "volatile" || key == "hostnames" => {}
                [key, value] if !["proxy", "delete", "include"].contains(&key.as_str()) => {
                    let key = key.strip_prefix('\\').unwrap_or(key);
                    map.entries.push((key.into(), value.clone()));
                }
                _ => map.special = map.special.or(Some(entry.shown())),
            }
        }
        self.maps.insert(name.trim_start_matches('$').into(), map);
    }

    /// The key of an expression such as `$binary_remote_addr$http_x`.
    ///
    /// # Errors
    /// Why Diana cannot count by it.
    pub(crate) fn key(&self, expression: &str) -> Result<ZoneKey, String> {
        self.key_at(expression, 0)
    }

    fn key_at(&self, expression: &str, depth: usize) -> Result<ZoneKey, String> {
        let variables = variables_of(expression);
        if let ([variable], true) = (variables.as_slice(), depth < MAX_DEPTH)
            && is_alone(expression, variable)
            && let Some(map) = self.maps.get(*variable)
        {
            return self.chosen(map, depth);
        }
        let mut sources = Vec::new();
        let mut has_text = has_text(expression);
        for variable in variables {
            // Places of a rule are those of one server.
            if variable == "server_name" {
                has_text = true;
                continue;
            }
            let source =
                variables::source(variable).ok_or_else(|| match self.maps.get(variable) {
                    Some(_) => format!("its key combines the map `${variable}` with other values"),
                    None => format!("Diana does not count by the variable `${variable}`"),
                })?;
            sources.push(source);
        }
        Ok(ZoneKey { sources, has_text, ..ZoneKey::default() })
    }

    /// The key that a map chooses.
    fn chosen(&self, map: &ValueMap, depth: usize) -> Result<ZoneKey, String> {
        if let Some(special) = &map.special {
            return Err(format!("its key depends on `{special}` in a map"));
        }
        // The values that choose, through the map that makes them.
        let outer = self.maps.get(&map.source);
        let (base, entries, default) = match outer {
            Some(outer) if outer.is_geo && outer.special.is_none() => {
                let of = |value: &str| map.result(value).to_owned();
                let entries = outer.entries.iter().map(|(net, value)| (net.clone(), of(value)));
                (outer, entries.collect(), of(&outer.default))
            }
            _ => (map, map.entries.clone(), map.default.clone()),
        };
        let results = entries.iter().map(|(_, result)| result).chain([&default]);
        let mut keys: Vec<&String> = results.filter(|result| !result.is_empty()).collect();
        keys.dedup();
        keys.sort();
        keys.dedup();
        let [key] = keys.as_slice() else {
            return Err(match keys.is_empty() {
                true => "its key is always empty, so nginx limits no request".into(),
                false => "its key is one of several values, which a map chooses".into(),
            });
        };
        let key = self.key_at(key, depth + 1)?;
        let (limited, exempt): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, result)| !result.is_empty());
        let names = |list: Vec<(String, String)>| list.into_iter().map(|(it, _)| it).collect();
        let (limited, exempt): (Vec<String>, Vec<String>) = (names(limited), names(exempt));
        if base.source == "remote_addr" || base.source == "binary_remote_addr" {
            by_address(key, limited, exempt, !default.is_empty())
        } else {
            by_value(key, base, limited, exempt, !default.is_empty())
        }
    }
}

impl ValueMap {
    /// The result for a value. Maps compare without regard to case.
    fn result(&self, value: &str) -> &str {
        let entry = self.entries.iter().find(|(key, _)| key.eq_ignore_ascii_case(value));
        entry.map_or(&self.default, |(_, result)| result)
    }
}

/// Restricts a key to some networks.
fn by_address(
    key: ZoneKey,
    limited: Vec<String>,
    exempt: Vec<String>,
    is_limited: bool,
) -> Result<ZoneKey, String> {
    let net = |text: &String| {
        let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        net.map_err(|_| format!("its key depends on `{text}`, which is no network"))
    };
    let limited_nets = limited.iter().map(net).collect::<Result<Vec<_>, _>>()?;
    let exempt_nets = exempt.iter().map(net).collect::<Result<Vec<_>, _>>()?;
    let is_within = |inner: &IpNet| exempt_nets.iter().any(|outer| outer.contains(inner));
    if limited_nets.iter().any(is_within) {
        return Err("its key depends on networks within exempt networks".into());
    }
    let mut matching = key.matching.clone();
    if !is_limited {
        if !matching.is_empty() {
            return Err("its key depends on several maps".into());
        }
        matching.push(("addresses".into(), texts(limited)));
    }
    Ok(ZoneKey { matching, exempt: [key.exempt, exempt].concat(), ..key })
}

/// Restricts a key to some values of a variable.
fn by_value(
    key: ZoneKey,
    map: &ValueMap,
    limited: Vec<String>,
    exempt: Vec<String>,
    is_limited: bool,
) -> Result<ZoneKey, String> {
    let conditions = |values: Vec<String>| -> Result<Vec<(String, Tree)>, String> {
        if map.source == "request_method" {
            return Ok(vec![("methods".into(), texts(methods(&values)?))]);
        }
        let tests = tests(&values)?;
        let block = |test: Tree| condition(&map.source, test);
        let blocks: Option<Vec<_>> = tests.into_iter().map(block).collect();
        blocks.ok_or_else(|| format!("its key depends on the variable `${}`", map.source))
    };
    if map.is_geo {
        return Err(format!("its key depends on the address in `${}`", map.source));
    }
    match is_limited {
        true => Ok(ZoneKey { unless: [key.unless.clone(), conditions(exempt)?].concat(), ..key }),
        false if key.matching.is_empty() => Ok(ZoneKey { matching: conditions(limited)?, ..key }),
        false => Err("its key depends on several maps".into()),
    }
}

/// The condition that a variable passes a test.
fn condition(variable: &str, test: Tree) -> Option<(String, Tree)> {
    let Tree::Map(pairs) = &test else { return None };
    let list = |kind: &str| match pairs.first() {
        Some((key, values)) if key == "in" => Some((kind.to_owned(), values.clone())),
        _ => None,
    };
    match variable {
        "host" | "http_host" => list("hosts"),
        _ => {
            let (kind, name) = variable.split_once('_')?;
            let (key, name) = match kind {
                "http" => ("headers", name.to_ascii_lowercase().replace('_', "-")),
                "cookie" => ("cookies", name.into()),
                "arg" => ("query", name.into()),
                _ => return None,
            };
            Some((key.into(), Tree::Map(vec![(name, test)])))
        }
    }
}

/// The usual methods.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// The usual methods that one of the values of a map stands for. Texts are any methods.
fn methods(values: &[String]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for value in values {
        let Some(regex) = value.strip_prefix('~') else {
            found.push(value.to_ascii_uppercase());
            continue;
        };
        let (key, texts) = literal(regex)
            .ok_or_else(|| format!("its key depends on the regular expression `{value}`"))?;
        let has = |method: &str, text: &str| match key {
            "exact" => method == text,
            "prefix" => method.starts_with(text),
            "suffix" => method.ends_with(text),
            _ => method.contains(text),
        };
        let ignores_case = regex.starts_with('*');
        let texts =
            texts.into_iter().map(|it| if ignores_case { it.to_ascii_uppercase() } else { it });
        let texts: Vec<String> = texts.collect();
        let fits = |method: &&&str| texts.iter().any(|text| has(method, text));
        found.extend(METHODS.iter().filter(fits).map(|method| (*method).to_owned()));
    }
    found.sort();
    found.dedup();
    match found.is_empty() {
        true => Err("its key depends on a method that no request has".into()),
        false => Ok(found),
    }
}

/// The tests of which one must pass for one of the values of a map.
fn tests(values: &[String]) -> Result<Vec<Tree>, String> {
    let test = |key: &str, value: Tree| {
        let ignore_case = ("ignore_case".to_owned(), Tree::Bool(true));
        Tree::Map(vec![(key.to_owned(), value), ignore_case])
    };
    let (mut plain, mut found) = (Vec::new(), Vec::new());
    for value in values {
        match value.strip_prefix('~') {
            None if value.is_empty() => {
                found.push(Tree::Map(vec![("present".into(), Tree::Bool(false))]));
            }
            None => plain.push(value.clone()),
            Some(regex) => {
                let why = || format!("its key depends on the regular expression `{value}`");
                let (key, texts) = literal(regex).ok_or_else(why)?;
                let has_case = !regex.starts_with('*');
                for text in texts {
                    let text = Tree::Text(text);
                    found.push(match has_case {
                        true => Tree::Map(vec![(key.into(), text)]),
                        false => test(key, text),
                    });
                }
            }
        }
    }
    if !plain.is_empty() {
        found.insert(0, test("in", texts(plain)));
    }
    Ok(found)
}

fn texts(list: Vec<String>) -> Tree {
    Tree::List(list.into_iter().map(Tree::Text).collect())
}

/// The variables of an expression.
fn variables_of(expression: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for part in expression.split('$').skip(1) {
        let part = part.strip_prefix('{').unwrap_or(part);
        let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        found.extend(part.get(..end.unwrap_or(part.len())).filter(|name| !name.is_empty()));
    }
    found
}

/// Returns true if an expression has a text beside its variables.
fn has_text(expression: &str) -> bool {
    let mut parts = expression.split('$');
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !parts.next().unwrap_or_default().is_empty()
        || parts.any(|part| match part.strip_prefix('{') {
            Some(rest) => rest.split_once('}').is_some_and(|(_, text)| !text.is_empty()),
            None => !part.chars().all(is_letter),
        })
}

/// Returns true if an expression is this variable only.
fn is_alone(expression: &str, variable: &str) -> bool {
    let bare = expression.strip_prefix('$').unwrap_or_default();
    bare == variable || bare.strip_prefix('{').and_then(|it| it.strip_suffix('}')) == Some(variable)
}
