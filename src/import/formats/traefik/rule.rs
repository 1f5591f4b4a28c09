//! Rules of routers, such as ``Host(`a.example`) && PathPrefix(`/shop`)``.

use diana_policy::tree::Tree;

use crate::condition::{RequestCondition, present};
use crate::envoy::matchers::StringTest;
use crate::routes::PathKind;

/// Maximum number of alternatives of a rule.
const MOST_ALTERNATIVES: usize = 64;

/// Maximum depth of parentheses.
const MAX_DEPTH: usize = 16;

/// Requests that a router takes.
#[derive(Debug, Default, Clone)]
pub(super) struct RouterMatch {
    /// None stands for all.
    pub(super) host: Option<String>,
    pub(super) path: Option<(String, PathKind)>,
    /// All other tests.
    pub(super) condition: RequestCondition,
}

impl RouterMatch {
    fn and(&self, other: &RouterMatch) -> Result<RouterMatch, String> {
        let mut both = self.clone();
        both.condition.and(&other.condition)?;
        if both.host.is_some() && other.host.is_some() && both.host != other.host {
            return Err("it requires two hosts".into());
        }
        if both.path.is_some() && other.path.is_some() && both.path != other.path {
            return Err("it requires two paths".into());
        }
        both.host = both.host.or_else(|| other.host.clone());
        both.path = both.path.or_else(|| other.path.clone());
        Ok(both)
    }
}

/// Reads a rule as alternatives.
///
/// # Errors
/// Why no entry expresses it.
pub(super) fn read(rule: &str) -> Result<Vec<RouterMatch>, String> {
    let mut parser = RuleParser { rest: rule.trim(), depth: 0 };
    let alternatives = parser.any()?;
    match parser.rest {
        "" => Ok(alternatives),
        rest => {
            Err(format!("found `{}` behind its end", rest.chars().take(20).collect::<String>()))
        }
    }
}

struct RuleParser<'r> {
    rest: &'r str,
    depth: usize,
}

impl<'r> RuleParser<'r> {
    /// Removes a text from the beginning of the rest. Returns true if it was there.
    fn eat(&mut self, text: &str) -> bool {
        let after = self.rest.strip_prefix(text);
        self.rest = after.unwrap_or(self.rest).trim_start();
        after.is_some()
    }

    fn any(&mut self) -> Result<Vec<RouterMatch>, String> {
        let mut found = self.all()?;
        while self.eat("||") {
            found.extend(self.all()?);
            if found.len() > MOST_ALTERNATIVES {
                return Err(format!("it has more than {MOST_ALTERNATIVES} alternatives"));
            }
        }
        Ok(found)
    }

    fn all(&mut self) -> Result<Vec<RouterMatch>, String> {
        let mut found = self.one()?;
        while self.eat("&&") {
            let more = self.one()?;
            if found.len() * more.len() > MOST_ALTERNATIVES {
                return Err(format!("it has more than {MOST_ALTERNATIVES} alternatives"));
            }
            let pairs = found.iter().flat_map(|one| more.iter().map(|other| one.and(other)));
            found = pairs.collect::<Result<_, _>>()?;
        }
        Ok(found)
    }

    fn one(&mut self) -> Result<Vec<RouterMatch>, String> {
        if self.eat("!") {
            return Err("it has an opposite (`!`)".into());
        }
        if self.eat("(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err("it has too many parentheses".into());
            }
            let found = self.any()?;
            self.depth -= 1;
            return if self.eat(")") { Ok(found) } else { Err("found no `)`".into()) };
        }
        let end = self.rest.find('(').ok_or("found no matcher such as ``Host(`a`)``")?;
        let name = self.rest.get(..end).unwrap_or_default().trim();
        self.rest = self.rest.get(end + 1..).unwrap_or_default().trim_start();
        let mut values = Vec::new();
        while !self.eat(")") {
            values.push(self.value()?);
            self.eat(",");
        }
        matcher(name, &values)
    }

    /// A text in backticks or quotes.
    fn value(&mut self) -> Result<&'r str, String> {
        let mut letters = self.rest.chars();
        let quote = letters.next().filter(|quote| "`\"'".contains(*quote));
        let text = letters.as_str();
        let end = quote.and_then(|quote| text.find(quote)).ok_or("found no text in backticks")?;
        self.rest = text.get(end + 1..).unwrap_or_default().trim_start();
        Ok(text.get(..end).unwrap_or_default())
    }
}

/// The alternatives of a matcher.
fn matcher(name: &str, values: &[&str]) -> Result<Vec<RouterMatch>, String> {
    let of = |condition| RouterMatch { condition, ..RouterMatch::default() };
    let paths = |kind| {
        let path = |value: &&str| RouterMatch {
            path: Some(((*value).to_owned(), kind)),
            ..RouterMatch::default()
        };
        Ok(values.iter().map(path).collect())
    };
    let test = |kind, name: &str, test| Ok(vec![of(RequestCondition::of_test(kind, name, test))]);
    match (name, values) {
        (_, []) => Err(format!("`{name}` has no text")),
        ("Host", hosts) => {
            let host = |host: &&str| RouterMatch {
                host: Some(host.to_ascii_lowercase()),
                ..RouterMatch::default()
            };
            Ok(hosts.iter().map(host).collect())
        }
        ("PathPrefix", _) => paths(PathKind::Text),
        ("Path", _) => paths(PathKind::Exact),
        ("PathRegexp", _) => paths(PathKind::Regex),
        ("Method", methods) => Ok(vec![of(RequestCondition::of_list("methods", methods))]),
        ("ClientIP", nets) => Ok(vec![of(RequestCondition::of_list("addresses", nets))]),
        ("Header" | "Headers", [name, value]) => {
            test("headers", &name.to_ascii_lowercase(), Tree::from(*value))
        }
        ("HeaderRegexp" | "HeadersRegexp", [name, ".*" | ".+" | "^.*$" | "^.+$"]) => {
            test("headers", &name.to_ascii_lowercase(), present(true))
        }
        ("HeaderRegexp" | "HeadersRegexp", [name, regex]) => {
            test("headers", &name.to_ascii_lowercase(), StringTest::of_regex(regex)?.tree()?)
        }
        ("Query", [name, value]) => test("query", name, Tree::from(*value)),
        ("Query", [pair]) if pair.contains('=') => {
            let (name, value) = pair.split_once('=').unwrap_or_default();
            test("query", name, Tree::from(value))
        }
        _ => Err(format!("it depends on `{name}`")),
    }
}
