//! Envoy's matchers of headers and parameters, as conditions.

use diana_policy::tree::Tree;

use super::fields::{field, flag, items, text};
use crate::condition::{RequestCondition, present};
use crate::manifest::ManifestNode;
use crate::regex;
use crate::routes::PathKind;

/// A test of a text.
pub(crate) struct StringTest {
    /// `exact`, `prefix`, `suffix` or `contains`.
    kind: &'static str,
    /// Of which one must pass.
    texts: Vec<String>,
    ignore_case: bool,
}

impl StringTest {
    fn new(kind: &'static str, text: String) -> StringTest {
        StringTest { kind, texts: vec![text], ignore_case: false }
    }

    /// A StringMatcher.
    fn read(node: &ManifestNode<'_>) -> Result<StringTest, String> {
        let ignore_case = flag(node, "ignore_case") == Some(true);
        for kind in ["exact", "prefix", "suffix", "contains"] {
            if let Some(text) = text(node, kind) {
                return Ok(StringTest { ignore_case, ..StringTest::new(kind, text) });
            }
        }
        let regex = text(node, "safe_regex.regex").ok_or("it has a matcher of another kind")?;
        StringTest::of_regex(&regex)
    }

    /// A regular expression, which must match the whole text.
    ///
    /// # Errors
    /// It cannot be written as a few texts.
    pub(crate) fn of_regex(regex: &str) -> Result<StringTest, String> {
        let why = || format!("it depends on the regular expression `{regex}`");
        let bare = regex.strip_prefix('^').unwrap_or(regex);
        let bare = bare.strip_suffix('$').unwrap_or(bare);
        let (begin, bare) = bare.strip_prefix(".*").map_or(("^", bare), |rest| ("", rest));
        let (end, bare) = bare.strip_suffix(".*").map_or(("$", bare), |rest| ("", rest));
        // The whole text is matched, and so each alternative.
        let has_group = bare.starts_with('(') || !bare.contains('|');
        let bare = if has_group { bare.to_owned() } else { format!("({bare})") };
        let (kind, texts) = regex::literal(&format!("{begin}{bare}{end}")).ok_or_else(why)?;
        Ok(StringTest { kind, texts, ignore_case: false })
    }

    /// The test of a document.
    ///
    /// # Errors
    /// Why no test does.
    pub(crate) fn tree(&self) -> Result<Tree, String> {
        let test = match (self.kind, self.texts.as_slice()) {
            (kind, [text]) => (kind.to_owned(), Tree::Text(text.clone())),
            ("exact", texts) => {
                ("in".to_owned(), Tree::List(texts.iter().cloned().map(Tree::Text).collect()))
            }
            (kind, _) => return Err(format!("it has several texts of which one is a {kind}")),
        };
        let case = self.ignore_case.then(|| ("ignore_case".to_owned(), Tree::Bool(true)));
        Ok(Tree::Map([test].into_iter().chain(case).collect()))
    }
}

/// The condition that a request has all of these headers.
///
/// # Errors
/// Why no entry expresses it.
pub(crate) fn headers(list: &[ManifestNode<'_>]) -> Result<RequestCondition, String> {
    let mut all = RequestCondition::default();
    for matcher in list {
        all.and(&header(matcher)?)?;
    }
    Ok(all)
}

/// A HeaderMatcher.
fn header(node: &ManifestNode<'_>) -> Result<RequestCondition, String> {
    let name = text(node, "name").unwrap_or_default().to_ascii_lowercase();
    let is_inverted = flag(node, "invert_match") == Some(true);
    if flag(node, "treat_missing_header_as_empty") == Some(true) {
        return Err(format!("it takes a missing header {name} for an empty one"));
    }
    if let Some(range) = field(node, "range_match") {
        let bound = |key: &str| text(&range, key).unwrap_or_else(|| "0".into());
        let (start, end) = (bound("start"), bound("end"));
        let pairs = [("ge", start), ("lt", end)];
        let pairs = pairs.into_iter().map(|(key, number)| (key.to_owned(), Tree::Number(number)));
        return of_header(&name, Tree::Map(pairs.collect()), is_inverted);
    }
    let is_present = flag(node, "present_match");
    let test = if let Some(matcher) = field(node, "string_match") {
        StringTest::read(&matcher)?
    } else if let Some(regex) = text(node, "safe_regex_match.regex") {
        StringTest::of_regex(&regex)?
    } else {
        let old = ["exact", "prefix", "suffix", "contains"];
        let old =
            old.into_iter().find_map(|kind| Some((kind, text(node, &format!("{kind}_match"))?)));
        match old {
            Some((kind, text)) => StringTest::new(kind, text),
            // A matcher without a test is about the presence.
            None => {
                let test = present(is_present.unwrap_or(true) != is_inverted);
                return of_header(&name, test, false);
            }
        }
    };
    match name.as_str() {
        ":method" => of_list("methods", &test, is_inverted),
        ":authority" | "host" => of_host(&test, is_inverted),
        ":path" => of_path(&test, is_inverted),
        _ => of_header(&name, test.tree()?, is_inverted),
    }
}

/// The test of a header. An opposite holds only if there is a value.
fn of_header(name: &str, test: Tree, is_inverted: bool) -> Result<RequestCondition, String> {
    if name.starts_with(':') {
        return Err(format!("it depends on {name}"));
    }
    if !is_inverted {
        return Ok(RequestCondition::of_test("headers", name, test));
    }
    let mut condition = RequestCondition::of_test("headers", name, present(true));
    condition.and_not(RequestCondition::of_test("headers", name, test))?;
    Ok(condition)
}

fn of_list(key: &str, test: &StringTest, is_inverted: bool) -> Result<RequestCondition, String> {
    if test.kind != "exact" {
        return Err(format!("it depends on a part of `{key}`"));
    }
    let texts: Vec<&str> = test.texts.iter().map(String::as_str).collect();
    inverted(RequestCondition::of_list(key, &texts), is_inverted)
}

fn of_host(test: &StringTest, is_inverted: bool) -> Result<RequestCondition, String> {
    let all_below = |text: &String| text.starts_with('.').then(|| format!("*{text}"));
    match test.kind {
        "suffix" => {
            let hosts: Option<Vec<String>> = test.texts.iter().map(all_below).collect();
            let texts = hosts.ok_or("it depends on the end of the host")?;
            of_list("hosts", &StringTest { kind: "exact", texts, ignore_case: true }, is_inverted)
        }
        _ => of_list("hosts", test, is_inverted),
    }
}

fn of_path(test: &StringTest, is_inverted: bool) -> Result<RequestCondition, String> {
    let kind = match test.kind {
        "exact" => PathKind::Exact,
        "prefix" => PathKind::Text,
        kind => return Err(format!("it depends on the path by `{kind}`")),
    };
    let [text] = test.texts.as_slice() else { return Err("it depends on several paths".into()) };
    if text.contains('?') || !text.starts_with('/') {
        return Err(format!("it depends on the path `{text}`"));
    }
    inverted(RequestCondition::of_path(text, kind, test.ignore_case), is_inverted)
}

/// A condition, or its opposite.
///
/// # Errors
/// Why no entry expresses the opposite.
pub(crate) fn inverted(
    condition: RequestCondition,
    is_inverted: bool,
) -> Result<RequestCondition, String> {
    if !is_inverted {
        return Ok(condition);
    }
    if let Some(opposite) = condition.opposite() {
        return Ok(opposite);
    }
    let mut opposite = RequestCondition::default();
    opposite.and_not(condition)?;
    Ok(opposite)
}

/// The condition that a request has all of these parameters.
///
/// # Errors
/// Why no entry expresses it.
pub(crate) fn parameters(list: &[ManifestNode<'_>]) -> Result<RequestCondition, String> {
    let mut all = RequestCondition::default();
    for node in list {
        let name = text(node, "name").unwrap_or_default();
        let test = match field(node, "string_match") {
            Some(matcher) => StringTest::read(&matcher)?.tree()?,
            None => present(flag(node, "present_match").unwrap_or(true)),
        };
        all.and(&RequestCondition::of_test("query", &name, test))?;
    }
    Ok(all)
}

/// The networks of a list of ranges.
pub(crate) fn ranges(node: &ManifestNode<'_>, path: &str) -> Vec<String> {
    let net = |range: &ManifestNode<'_>| {
        Some(format!(
            "{}/{}",
            text(range, "address_prefix")?,
            text(range, "prefix_len").unwrap_or_else(|| "0".into())
        ))
    };
    items(node, path).iter().filter_map(net).collect()
}
