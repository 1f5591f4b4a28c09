//! `match`, `unless` and `except`: which requests an entry or a rule is about.

use super::addresses;
use super::addresses::ADDRESSES;
use super::conditions;
use super::conditions::{CONDITIONS, KEYED_CONDITIONS, PAYLOAD};
use super::fields::Fields;
use super::mapping::Allowed;
use super::mapping::Allowed::{Either, List, Map, Named, Text};
use super::mapping::{Mapping, mapping, optional, required};
use super::native;
use super::node::Node;
use super::values;
use super::values::TEXT;
use diana_policy::spelling::header::is_name;
use diana_policy::tree::Tree;
use diana_policy::{ConditionBlock, Except, HostPattern, Match, RouteNames};

/// The allowed values of `match` and `unless`.
pub const BLOCKS: Allowed = Either(&[Map(&MATCH), List("a list of those", &Map(&MATCH))]);

/// `match` and `unless`.
pub static MATCH: Mapping = mapping(
    "match",
    "a mapping such as `{methods: [POST], hosts: [\"*.example.com\"]}`",
    &[
        optional("methods", List("a list of methods such as `[GET, POST]`", &TEXT)),
        optional("hosts", HOSTS),
        optional("headers", CONDITIONS),
        optional("query", CONDITIONS),
        optional("cookies", CONDITIONS),
        optional("addresses", ADDRESSES),
        optional(
            "metadata",
            Named(
                "a mapping from namespaces to mappings from keys to conditions, such as \
                 `{com.example.tenancy: {plan: gold}}`",
                &KEYED_CONDITIONS,
            ),
        ),
        optional("claims", Map(&CLAIMS)),
        optional("route", ROUTE),
    ],
);

/// The name of a route, or its beginning; or a list of those.
const ROUTE: Allowed = Either(&[ROUTE_NAME, Map(&ROUTE_TEST), ROUTES]);
const ROUTE_NAME: Allowed =
    Text("the name of a route, which is not empty and on one line", |text| {
        !text.is_empty() && conditions::is_line(text)
    });
static ROUTE_TEST: Mapping = mapping(
    "route",
    "one of `{exact: …}`, `{prefix: …}`",
    &[optional("exact", ROUTE_NAME), optional("prefix", ROUTE_NAME)],
);
const ROUTES: Allowed = List(
    "a list such as `[shop.0, {prefix: httproute/team-a/shop/}]`",
    &Either(&[ROUTE_NAME, Map(&ROUTE_TEST)]),
);

const HOSTS: Allowed = List("a list of hosts such as `[example.com, \"*.example.com\"]`", &TEXT);

static CLAIMS: Mapping = mapping(
    "claims",
    "a mapping such as `{payload: jwt, values: {plan: gold}}`, where `payload` is the \
     `payload_in_metadata` of jwt_authn",
    &[required("payload", PAYLOAD), required("values", KEYED_CONDITIONS)],
);

/// `except` of the document, of an entry or of a rule.
pub static EXCEPT: Mapping = mapping(
    "except",
    "a mapping such as `{addresses: [10.0.0.0/8], paths: [/healthz]}`",
    &[
        optional("addresses", ADDRESSES),
        optional("paths", List("a list of paths such as `[/healthz]`", &TEXT)),
        optional("hosts", HOSTS),
        optional("headers", CONDITIONS),
        optional("route", ROUTE),
    ],
);

/// Reads `match` and `unless` of an entry.
pub fn read(entry: &Fields<'_>) -> Match {
    let mut any = blocks(entry, "match");
    // A single block without conditions always holds.
    any.retain(|block| *block != ConditionBlock::default());
    let mut unless = blocks(entry, "unless");
    // One without conditions would hold for all requests.
    unless.retain(|block| *block != ConditionBlock::default());
    // A route is only read if no other block decides.
    any.sort_by_key(ConditionBlock::reads_route);
    unless.sort_by_key(ConditionBlock::reads_route);
    if let Some(node) = entry.get("unless")
        && node.tree() == &Tree::Map(Vec::new())
    {
        node.problem("found an empty mapping, which has no condition; remove it".into());
    }
    Match { any, unless }
}

/// Reads a block, or a list of blocks.
fn blocks(entry: &Fields<'_>, key: &'static str) -> Vec<ConditionBlock> {
    let Some(node) = entry.get(key) else { return Vec::new() };
    let Tree::List(items) = node.tree() else { return block(node).into_iter().collect() };
    if items.is_empty() {
        node.problem(format!("found an empty list, allowed: {}", entry.allowed(key)));
    }
    let children = node.children();
    for child in children.iter().filter(|child| *child.tree() == Tree::Map(Vec::new())) {
        child.problem("found an empty mapping, which has no condition; remove it".into());
    }
    children.iter().filter_map(block).collect()
}

fn block(node: &Node<'_>) -> Option<ConditionBlock> {
    let fields = Fields::read(node, &Allowed::Map(&MATCH))?;
    Some(ConditionBlock {
        methods: items(&fields, "methods").iter().filter_map(method).collect(),
        hosts: items(&fields, "hosts").iter().filter_map(host).collect(),
        addresses: items(&fields, "addresses").iter().filter_map(addresses::read).collect(),
        values: [
            conditions::of_headers(fields.named("headers")),
            conditions::of_query(fields.named("query")),
            conditions::of_cookies(fields.named("cookies")),
            conditions::of_metadata(fields.named("metadata")),
            fields
                .get("claims")
                .inspect(|node| node.native_problem(native::CLAIMS))
                .and_then(|_| fields.mapping("claims"))
                .map(|claims| conditions::of_claims(&claims))
                .unwrap_or_default(),
        ]
        .concat(),
        routes: routes(&fields),
    })
}

/// Reads `route`.
fn routes(fields: &Fields<'_>) -> RouteNames {
    let mut routes = RouteNames::default();
    let Some(node) = fields.get("route") else { return routes };
    if let Tree::List(_) = node.tree() {
        items(fields, "route").iter().for_each(|item| add_route(item, &mut routes));
    } else {
        add_route(node, &mut routes);
    }
    routes
}

/// Adds the name of a route, or its beginning.
fn add_route(node: &Node<'_>, routes: &mut RouteNames) {
    let (name, is_prefix) = match node.tree() {
        Tree::Map(_) => {
            let Some(fields) = Fields::read(node, &Allowed::Map(&ROUTE_TEST)) else { return };
            if fields.pairs().len() != 1 {
                return node.reject(ROUTE);
            }
            let is_prefix = fields.has("prefix");
            (fields.text(if is_prefix { "prefix" } else { "exact" }), is_prefix)
        }
        _ => (node.fitting(&ROUTE), false),
    };
    let Some(name) = name else { return };
    let names = if is_prefix { &mut routes.prefixes } else { &mut routes.exact };
    match names.binary_search_by(|known| known.as_str().cmp(name)) {
        Ok(_) => node.problem(format!("{} is already in the list", node.tree().found())),
        Err(at) => names.insert(at, name.into()),
    }
}

/// The items of a list. An empty list is reported, since it could mean all or none.
fn items<'a>(fields: &Fields<'a>, key: &'static str) -> Vec<Node<'a>> {
    let items = fields.list(key).unwrap_or_default();
    if fields.get(key).is_some_and(|node| *node.tree() == Tree::List(Vec::new())) {
        let allowed = fields.allowed(key);
        let message = format!("found an empty list, allowed: {allowed}; omit `{key}` to match all");
        fields.report(key, message);
    }
    items
}

fn method(node: &Node<'_>) -> Option<String> {
    let allowed = "a method in upper case, such as POST";
    let text = node.text(&allowed)?;
    let upper = text.to_ascii_uppercase();
    if !is_name(text) {
        node.reject(allowed);
    } else if upper != text {
        node.reject_with(&format!("did you mean `{upper}`?"), &allowed);
    } else {
        return Some(upper);
    }
    None
}

/// Reads a host.
pub fn host(node: &Node<'_>) -> Option<HostPattern> {
    let text = node.text(&"a host name, or `*.` and a host name")?;
    HostPattern::parse(text)
        .map_err(|why| node.problem(format!("found {}, {why}", node.tree().found())))
        .ok()
}

/// Reads `except` of the document, of an entry or of a rule.
pub fn except(outer: &Fields<'_>, ignore_case: bool) -> Except {
    let Some(fields) = outer.mapping("except") else { return Except::default() };
    let path = |node: &Node<'_>| values::path(node, &"a path such as `/healthz`", ignore_case);
    let items = |key| fields.list(key).unwrap_or_default();
    let addresses = items("addresses").iter().filter_map(addresses::read).collect();
    let paths = items("paths").iter().filter_map(path).collect();
    let hosts = items("hosts").iter().filter_map(host).collect();
    let mut any = vec![ConditionBlock { hosts, ..ConditionBlock::default() }];
    any.extend(
        conditions::of_headers(fields.named("headers")).into_iter().map(|condition| {
            ConditionBlock { values: vec![condition], ..ConditionBlock::default() }
        }),
    );
    any.push(ConditionBlock { addresses, ..ConditionBlock::default() });
    any.push(ConditionBlock { routes: routes(&fields), ..ConditionBlock::default() });
    any.retain(|block| *block != ConditionBlock::default());
    Except { paths, any }
}
