//! The expressions of the Common Expression Language that policies contain: tests of one value of a
//! request, joined by `&&`, and by `||` if they are about one value.

use diana_policy::port::Pseudo;
use diana_policy::tree::Tree;

use crate::condition::{RequestCondition, present};
use crate::envoy::matchers::{StringTest, inverted};
use crate::key::KeySource;
use crate::routes::PathKind;

#[cfg(test)]
mod tests;

/// Maximum depth of parentheses and opposites.
const MAX_DEPTH: usize = 16;

/// A value of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Method,
    Host,
    Path,
    Address,
    Header(String),
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ValueTest {
    subject: Subject,
    test: TestKind,
    is_inverted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TestKind {
    OneOf(Vec<String>),
    /// `startsWith`, `endsWith` or `contains`, as `prefix`, `suffix` and `contains`.
    Part(&'static str, String),
    Matches(String),
    Present,
}

/// The condition of a predicate.
///
/// # Errors
/// Why no entry expresses it.
pub(super) fn predicate(text: &str) -> Result<RequestCondition, String> {
    let mut parser = CelParser { rest: text.trim(), depth: 0 };
    let tests = parser.all()?;
    if !parser.rest.is_empty() {
        return Err(depends(parser.rest));
    }
    let mut all = RequestCondition::default();
    for test in tests {
        all.and(&test.condition()?)?;
    }
    Ok(all)
}

/// The value that an expression counts by.
///
/// # Errors
/// Why no actor is this value.
pub(super) fn counter(text: &str) -> Result<KeySource, String> {
    let (subject, rest) = subject(text.trim())?;
    if !rest.trim().is_empty() {
        return Err(depends(text));
    }
    Ok(match subject {
        Subject::Method => KeySource::part(Pseudo::Method),
        Subject::Host => KeySource::part(Pseudo::Authority),
        Subject::Path => KeySource::part(Pseudo::Path),
        Subject::Address => KeySource::address(),
        Subject::Header(name) => KeySource::header(&name),
    })
}

fn depends(text: &str) -> String {
    let shown: String = text.trim().chars().take(60).collect();
    if shown.contains("auth.") {
        return format!(
            "it depends on `{shown}`, which only Kuadrant's filter has; see the actors `jwt_claim` and `header`"
        );
    }
    format!("it depends on `{shown}`")
}

/// The value with whose name a text begins, and the rest.
fn subject(text: &str) -> Result<(Subject, &str), String> {
    const NAMES: [(&str, Subject); 6] = [
        ("request.method", Subject::Method),
        ("request.host", Subject::Host),
        ("request.url_path", Subject::Path),
        ("request.path", Subject::Path),
        ("source.remote_address", Subject::Address),
        ("source.address", Subject::Address),
    ];
    for (name, subject) in NAMES {
        let ends = |rest: &str| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_');
        if let Some(rest) = text.strip_prefix(name).filter(|rest| ends(rest)) {
            return Ok((subject, rest));
        }
    }
    let header = text.strip_prefix("request.headers").ok_or_else(|| depends(text))?;
    if let Some(inner) = header.strip_prefix('[') {
        let (name, rest) = literal(inner.trim_start())?;
        let rest = rest.trim_start().strip_prefix(']').ok_or_else(|| depends(text))?;
        return Ok((Subject::Header(name.to_ascii_lowercase()), rest));
    }
    let name = header.strip_prefix('.').ok_or_else(|| depends(text))?;
    let end = name.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(name.len());
    let (name, rest) = name.split_at_checked(end).ok_or_else(|| depends(text))?;
    Ok((Subject::Header(name.to_ascii_lowercase()), rest))
}

/// The text in quotes with which a text begins, and the rest.
fn literal(text: &str) -> Result<(&str, &str), String> {
    let quote = text.chars().next().filter(|quote| ['\'', '"'].contains(quote));
    let inner = quote.and_then(|quote| text.strip_prefix(quote)?.split_once(quote));
    inner.filter(|(value, _)| !value.contains('\\')).ok_or_else(|| depends(text))
}

struct CelParser<'c> {
    rest: &'c str,
    depth: usize,
}

impl CelParser<'_> {
    /// Removes a text from the beginning of the rest. Returns true if it was there.
    fn eat(&mut self, text: &str) -> bool {
        let after = self.rest.strip_prefix(text);
        self.rest = after.unwrap_or(self.rest).trim_start();
        after.is_some()
    }

    /// Each level takes memory of the stack.
    fn descend(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            Err("it has too many parentheses or `!`".into())
        } else {
            Ok(())
        }
    }

    fn all(&mut self) -> Result<Vec<ValueTest>, String> {
        let mut found = self.any()?;
        while self.eat("&&") {
            found.extend(self.any()?);
        }
        Ok(found)
    }

    /// Alternatives, which must be about one value.
    fn any(&mut self) -> Result<Vec<ValueTest>, String> {
        let mut found = self.one()?;
        while self.eat("||") {
            let more = self.one()?;
            let one = match (found.as_mut_slice(), more.as_slice()) {
                ([one], [other]) if one.subject == other.subject => Some((one, other)),
                _ => None,
            };
            match one {
                Some((one, other)) if !one.is_inverted && !other.is_inverted => {
                    match (&mut one.test, &other.test) {
                        (TestKind::OneOf(own), TestKind::OneOf(more)) => own.extend(more.clone()),
                        _ => return Err("it has alternatives (`||`)".into()),
                    }
                }
                _ => return Err("it has alternatives (`||`)".into()),
            }
        }
        Ok(found)
    }

    fn one(&mut self) -> Result<Vec<ValueTest>, String> {
        if self.eat("!") {
            self.descend()?;
            let mut found = self.one()?;
            self.depth -= 1;
            let [test] = found.as_mut_slice() else {
                return Err("it has an opposite of several tests".into());
            };
            test.is_inverted = !test.is_inverted;
            return Ok(found);
        }
        if self.eat("(") {
            self.descend()?;
            let found = self.all()?;
            self.depth -= 1;
            return if self.eat(")") { Ok(found) } else { Err("found no `)`".into()) };
        }
        self.test().map(|test| vec![test])
    }

    fn test(&mut self) -> Result<ValueTest, String> {
        if self.eat("has(") {
            let (subject, rest) = subject(self.rest)?;
            self.rest = rest.trim_start();
            return match self.eat(")") {
                true => Ok(ValueTest { subject, test: TestKind::Present, is_inverted: false }),
                false => Err(depends(rest)),
            };
        }
        if self.rest.starts_with(['\'', '"']) {
            let (name, rest) = literal(self.rest)?;
            let rest = rest.trim_start().strip_prefix("in ").map(str::trim_start);
            let rest = rest.and_then(|rest| rest.strip_prefix("request.headers"));
            self.rest = rest.ok_or_else(|| depends(self.rest))?.trim_start();
            let subject = Subject::Header(name.to_ascii_lowercase());
            return Ok(ValueTest { subject, test: TestKind::Present, is_inverted: false });
        }
        let whole = self.rest;
        let (subject, rest) = subject(whole)?;
        self.rest = rest.trim_start();
        let is_inverted = self.eat("!=");
        if is_inverted || self.eat("==") {
            let test = TestKind::OneOf(vec![self.literal()?]);
            return Ok(ValueTest { subject, test, is_inverted });
        }
        if self.eat("in ") {
            let mut values = Vec::new();
            if !self.eat("[") {
                return Err(depends(whole));
            }
            while !self.eat("]") {
                values.push(self.literal()?);
                self.eat(",");
            }
            return Ok(ValueTest { subject, test: TestKind::OneOf(values), is_inverted });
        }
        let parts = [("startsWith", "prefix"), ("endsWith", "suffix"), ("contains", "contains")];
        for (name, kind) in parts {
            if self.eat(&format!(".{name}(")) {
                let test = TestKind::Part(kind, self.argument(whole)?);
                return Ok(ValueTest { subject, test, is_inverted });
            }
        }
        match self.eat(".matches(") {
            true => {
                let test = TestKind::Matches(self.argument(whole)?);
                Ok(ValueTest { subject, test, is_inverted })
            }
            false => Err(depends(whole)),
        }
    }

    fn literal(&mut self) -> Result<String, String> {
        let (value, rest) = literal(self.rest)?;
        self.rest = rest.trim_start();
        Ok(value.into())
    }

    fn argument(&mut self, whole: &str) -> Result<String, String> {
        let value = self.literal()?;
        if self.eat(")") { Ok(value) } else { Err(depends(whole)) }
    }
}

impl ValueTest {
    /// The condition that a request passes it.
    ///
    /// # Errors
    /// Why no entry expresses it.
    fn condition(&self) -> Result<RequestCondition, String> {
        let map = |key: &str, value: Tree| Tree::Map(vec![(key.into(), value)]);
        let list = |key: &str, values: &[String]| {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            RequestCondition::of_list(key, &values)
        };
        let condition = match (&self.subject, &self.test) {
            (Subject::Header(name), test) => {
                let test = match test {
                    TestKind::Present => return Ok(header(name, present(!self.is_inverted))),
                    TestKind::OneOf(values) => match values.as_slice() {
                        [value] => Tree::Text(value.clone()),
                        values => {
                            map("in", Tree::List(values.iter().cloned().map(Tree::Text).collect()))
                        }
                    },
                    TestKind::Part(kind, text) => map(kind, Tree::Text(text.clone())),
                    TestKind::Matches(regex) => StringTest::of_regex(&whole(regex))?.tree()?,
                };
                if !self.is_inverted {
                    return Ok(header(name, test));
                }
                // A test of a header that is absent fails in any case.
                let mut condition = header(name, present(true));
                condition.and_not(header(name, test))?;
                return Ok(condition);
            }
            (Subject::Method, TestKind::OneOf(values)) => list("methods", values),
            (Subject::Host, TestKind::OneOf(values)) => list("hosts", values),
            (Subject::Address, TestKind::OneOf(values)) => list("addresses", values),
            (Subject::Path, TestKind::OneOf(values)) if values.len() == 1 => {
                let path = values.first().map_or("/", String::as_str);
                RequestCondition::of_path(path, PathKind::Exact, false)
            }
            (Subject::Path, TestKind::Part("prefix", text)) if text.starts_with('/') => {
                RequestCondition::of_path(text, PathKind::Text, false)
            }
            (subject, _) => return Err(format!("it tests a part of {subject:?}").to_lowercase()),
        };
        inverted(condition, self.is_inverted)
    }
}

fn header(name: &str, test: Tree) -> RequestCondition {
    RequestCondition::of_test("headers", name, test)
}

/// A regular expression for the whole text that finds one for a part of it.
fn whole(regex: &str) -> String {
    let begin = if regex.starts_with('^') { "" } else { ".*" };
    let end = if regex.ends_with('$') { "" } else { ".*" };
    format!("{begin}{regex}{end}")
}
