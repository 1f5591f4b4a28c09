//! Conditions on values: of headers, query parameters, cookies, metadata and claims.

use std::borrow::Cow;

use super::fields::{Fields, NameIndex};
use super::mapping::Allowed;
use super::mapping::Allowed::{Either, Flag, List, Map, Named, Number, Text};
use super::mapping::{Mapping, mapping, optional, required};
use super::native;
use super::node::Node;
use super::values::{TEXT, TEXTS};
use diana_policy::number::signed_millionths;
use diana_policy::port::Property;
use diana_policy::spelling::cookie;
use diana_policy::spelling::header;
use diana_policy::tree::Tree;
use diana_policy::{Condition, ConditionField, Test};

/// The metadata key under which jwt_authn stores the claims of a verified token.
pub const PAYLOAD: Allowed =
    Text("the `payload_in_metadata` of jwt_authn", |name| !name.is_empty() && !name.contains('\0'));

/// Conditions on named values.
pub const CONDITIONS: Allowed =
    Named("a mapping from names to conditions, such as `{x-app: {prefix: mobile}}`", &TEST);

/// Conditions on values that may be within other values.
pub const KEYED_CONDITIONS: Allowed = Either(&[
    CONDITIONS,
    List("a list such as `[{key: [realm_access, roles], test: admin}]`", &Map(&KEYED_CONDITION)),
]);

/// A condition on a value that may be within others.
static KEYED_CONDITION: Mapping = mapping(
    "keyed_condition",
    "a mapping such as `{key: [realm_access, roles], test: admin}`",
    &[required("key", Either(&[TEXT, TEXTS])), required("test", TEST)],
);

/// A condition on a value.
const TEST: Allowed = Either(&[LINE, Map(&TESTS)]);
static TESTS: Mapping = mapping(
    "test",
    "one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, \
     `{not: …}`, `{ge: …, lt: …}`",
    &[
        optional("exact", LINE),
        optional("prefix", SOME),
        optional("suffix", SOME),
        optional("contains", SOME),
        optional("in", List("a list of values such as `[gold, silver]`", &LINE)),
        optional("present", Flag),
        optional("not", Either(&[LINE, Map(&TESTS)])),
        optional("gt", Number),
        optional("ge", Number),
        optional("lt", Number),
        optional("le", Number),
        optional("ignore_case", Flag),
    ],
);

/// Text that can be in a header.
const LINE: Allowed = Text("text on one line", is_line);
const SOME: Allowed =
    Text("non-empty text on one line; write `{present: true}` to match any value", |text| {
        !text.is_empty() && is_line(text)
    });

/// Returns true for text on one line.
pub fn is_line(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control())
}

/// The names and values of a mapping.
type Pairs<'a> = Vec<(&'a str, Node<'a>)>;

/// Reads a mapping from header names to tests.
pub fn of_headers(pairs: Pairs<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut names = NameIndex::new();
    for (key, value) in pairs {
        let name = key.to_ascii_lowercase();
        if name == "host" || name.starts_with(':') {
            let instead = "not a header; use `Url`, `paths`, `methods` or `hosts`";
            value.key_problem(instead.into());
        } else if !header::is_name(&name) {
            value.key_problem("not a valid header name".into());
        } else if names.insert(Cow::Owned(name.clone()), 0).is_some() && name != key {
            value.key_problem(format!("duplicate key: the same header as `{name}`"));
        }
        conditions.extend(condition(ConditionField::Header(name), &value));
    }
    conditions
}

/// Reads a mapping from names of query parameters to tests.
pub fn of_query(pairs: Pairs<'_>) -> Vec<Condition> {
    named(
        pairs,
        |name| (!name.is_empty()).then(|| ConditionField::Query(name.into())),
        "the name of a query parameter",
    )
}

/// Reads a mapping from names of cookies to tests.
pub fn of_cookies(pairs: Pairs<'_>) -> Vec<Condition> {
    let field = |name: &str| cookie::is_name(name).then(|| ConditionField::Cookie(name.into()));
    named(pairs, field, "a cookie name without `=`, `;` or spaces")
}

/// Reads a mapping from namespaces of metadata.
pub fn of_metadata(namespaces: Pairs<'_>) -> Vec<Condition> {
    let of_one = |(namespace, keys): (&str, Node<'_>)| {
        if !is_key(namespace) {
            keys.key_problem("found an empty name, allowed: a namespace".into());
        }
        keyed(&keys, &[namespace], "a key of metadata")
    };
    namespaces.into_iter().flat_map(of_one).collect()
}

/// Reads `claims` of a verified token.
pub fn of_claims(claims: &Fields<'_>) -> Vec<Condition> {
    let payload = claims.text("payload").unwrap_or("?");
    let below = ["envoy.filters.http.jwt_authn", payload];
    let values = claims.node("values");
    values.map(|values| keyed(values, &below, "the name of a claim")).unwrap_or_default()
}

/// Reads a mapping from keys to tests, or a list of tests of values that may be within others. `below`
/// leads to the values, and `kind` describes valid keys.
fn keyed(node: &Node<'_>, below: &[&str], kind: &str) -> Vec<Condition> {
    let field = |keys: &[&str]| property(&[below, keys].concat());
    if !matches!(node.tree(), Tree::List(_)) {
        let pairs = node.pairs(&KEYED_CONDITIONS).unwrap_or_default();
        return named(pairs, |key| field(&[key]), kind);
    }
    let items = node.children();
    if items.is_empty() {
        node.problem(format!("found an empty list, allowed: {KEYED_CONDITIONS}"));
    }
    let of_one = |item: &Node<'_>| {
        let fields = Fields::read(item, &Allowed::Map(&KEYED_CONDITION))?;
        let (key, test) = (fields.node("key"), fields.node("test"));
        let keys: Option<Vec<&str>> = match key?.tree() {
            Tree::List(keys) => keys.iter().map(Tree::text).collect(),
            one => one.text().map(|one| vec![one]),
        };
        if keys.as_ref().is_some_and(|keys| below.len() + keys.len() > 2) {
            key?.native_problem(native::NESTED);
        }
        let found = keys.filter(|keys| !keys.is_empty()).and_then(|keys| field(&keys));
        if found.is_none() {
            key?.reject(format!("{kind}, or a list of keys, none of them empty"));
        }
        condition(found?, test?)
    };
    items.iter().filter_map(of_one).collect()
}

fn is_key(name: &str) -> bool {
    !name.is_empty() && !name.contains('\0')
}

/// A value in dynamic metadata, by its namespace and keys.
fn property(path: &[&str]) -> Option<ConditionField> {
    let path = [&["metadata", "filter_metadata"], path].concat();
    path.iter().all(|key| is_key(key)).then(|| ConditionField::Property(Property::new(&path)))
}

/// Reads a mapping from names to tests. `field` validates a name, and `kind` describes valid names.
fn named(
    pairs: Pairs<'_>,
    field: impl Fn(&str) -> Option<ConditionField>,
    kind: &str,
) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for (name, value) in pairs {
        match field(name) {
            Some(field) => conditions.extend(condition(field, &value)),
            None => value.key_problem(format!("not a valid name, allowed: {kind}")),
        }
    }
    conditions
}

fn condition(field: ConditionField, node: &Node<'_>) -> Option<Condition> {
    if !matches!(node.tree(), Tree::Map(_)) {
        let text = node.fitting(&TEST)?;
        return Some(Condition::new(field, Test::Exact(text.into())));
    }
    let fields = Fields::read(node, &TEST)?;
    if let Some(inner) = fields.get("not").filter(|inner| matches!(inner.tree(), Tree::Map(_))) {
        if fields.pairs().len() > 1 {
            node.problem(format!("found other keys beside `not`, allowed: {TEST}"));
        }
        let fields = fields.mapping("not")?;
        if let Some(second) = fields.get("not") {
            second.key_problem("found `not` within `not`; write the test itself".into());
            return None;
        }
        return Some(match test(inner, &fields)? {
            (Test::Present(present), _) => Condition::new(field, Test::Present(!present)),
            (test, ignore_case) => Condition { field, test, ignore_case, is_negated: true },
        });
    }
    let (test, ignore_case) = test(node, &fields)?;
    Some(Condition { field, test, ignore_case, is_negated: false })
}

/// A test, and whether it ignores case.
fn test(node: &Node<'_>, fields: &Fields<'_>) -> Option<(Test, bool)> {
    let ignore_case = fields.flag("ignore_case", false);
    let case = |text: &str| match ignore_case {
        true => text.to_ascii_lowercase(),
        false => text.into(),
    };
    let text = |key| fields.text(key).map(case);
    let is_bound = |(key, _): &&(&str, Node<'_>)| BOUNDS.contains(key);
    let pairs: Vec<_> = fields.pairs().iter().filter(|(key, _)| *key != "ignore_case").collect();
    let test = match pairs.as_slice() {
        [("exact", _)] => text("exact").map(Test::Exact),
        [("prefix", _)] => text("prefix").map(Test::Prefix),
        [("suffix", _)] => text("suffix").map(Test::Suffix),
        [("contains", _)] => text("contains").map(Test::Contains),
        [("in", node)] => texts(node, &fields.allowed("in"), case).map(Test::In),
        [("present", value)] => value.boolean().map(Test::Present),
        [("not", _)] => text("not").map(Test::Not),
        bounds if !bounds.is_empty() && bounds.iter().copied().all(|pair| is_bound(&pair)) => {
            between(node, fields)
        }
        [_] => None,
        several => {
            node.problem(format!("found {} conditions, allowed: {TEST}", several.len()));
            None
        }
    };
    Some((test?, ignore_case))
}

const BOUNDS: [&str; 4] = ["gt", "ge", "lt", "le"];

/// A range of numbers.
fn between(node: &Node<'_>, fields: &Fields<'_>) -> Option<Test> {
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    for (key, value) in fields.pairs().iter().filter(|(key, _)| BOUNDS.contains(key)) {
        let number = match value.tree() {
            Tree::Int(number) => signed_millionths(number.to_string().as_bytes()),
            Tree::Number(text) => signed_millionths(text.as_bytes()),
            _ => None,
        };
        let Some(number) = number else {
            value.reject(Allowed::Number);
            return None;
        };
        match *key {
            "gt" => least = least.max(number + 1),
            "ge" => least = least.max(number),
            "lt" => most = most.min(number - 1),
            _ => most = most.min(number),
        }
    }
    if least > most {
        node.problem("found a range without numbers; exchange the bounds".into());
        return None;
    }
    Some(Test::Between(least, most))
}

/// A sorted list of texts.
fn texts(node: &Node<'_>, allowed: &Allowed, case: impl Fn(&str) -> String) -> Option<Vec<String>> {
    let items = node.list(allowed)?;
    if items.is_empty() {
        node.problem(format!("found an empty list, which no value matches; allowed: {allowed}"));
    }
    let mut texts: Vec<String> = Vec::new();
    for item in &items {
        let text = case(item.fitting(&LINE)?);
        match texts.binary_search(&text) {
            Ok(_) => item.problem(format!("{} is already in the list", item.tree().found())),
            Err(index) => texts.insert(index, text),
        }
    }
    Some(texts)
}
