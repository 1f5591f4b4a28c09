//! `LimitPolicy`: entries of a document as a resource of Kubernetes.
//!
//! The API server checks a resource by types, so each value has one form there: of the forms that a
//! document allows, the list, else the mapping. `DIFFERENCES` are the keys for which a document
//! has no such form.

pub mod crd;

use std::fmt;

use super::actors::STANDARD as STANDARD_ACTORS;
use super::document::{DOCUMENT, LIMITS};
use super::fields;
use super::mapping::Allowed::{self, Any, Choice, Either, List, Map, Named};
use super::mapping::{Mapping, mapping, required};
use super::node::{self, Node};
use super::node_path::{ConfigSource, nodes};
use super::problem::{NodeSpan, Problems};
use super::report::ProblemReport;
use super::values::{NAME, TEXT, is_name};
use diana_policy::ModuleKind;
use diana_policy::tree::Tree;

/// The group of the resource. The owner of a domain replaces it before the first release.
pub const GROUP: &str = "limits.diana.internal";

/// The kind of the resource.
pub const KIND: &str = "LimitPolicy";

/// The group of the routes.
const ROUTE_GROUP: &str = "gateway.networking.k8s.io";

/// The key of the entries.
const LIMITS_KEY: &str = "limits";

/// The kinds of routes.
const ROUTE_KINDS: [&str; 2] = ["HTTPRoute", "GRPCRoute"];

/// The `spec` of a resource.
static SPEC: Mapping = mapping(
    "policy",
    "a mapping such as `{targetRefs: […], limits: […]}`",
    &[
        required(
            "targetRefs",
            List(
                "a list such as `[{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}]`",
                &Map(&TARGET),
            ),
        ),
        required(LIMITS_KEY, LIMITS),
    ],
);

static TARGET: Mapping = mapping(
    "target",
    "a mapping such as `{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}`",
    &[
        required("group", Choice(|| vec![ROUTE_GROUP])),
        required("kind", Choice(|| ROUTE_KINDS.to_vec())),
        required("name", TEXT),
    ],
);

/// The form of a key in the resource, if its values in a document have no common form.
enum KeyDifference {
    /// It does not have the key.
    Absent,
    /// A single value under one key, and a list or a mapping under another. One of both is
    /// required, or none.
    Split { single: &'static str, other: &'static str, is_required: bool },
    /// It requires the key, with a text of this form.
    Required(Allowed),
    /// It has the key in this form alone.
    Only(Allowed),
}

/// The keys that differ, with their mappings in a document.
const DIFFERENCES: [(&str, &str, KeyDifference); 13] = [
    ("entry", "Url", KeyDifference::Absent),
    ("entry", "url", KeyDifference::Split { single: "url", other: "urls", is_required: true }),
    // The targets of the resource are its routes.
    ("match", "route", KeyDifference::Absent),
    ("except", "route", KeyDifference::Absent),
    // Counts continue by the name, whatever else changes.
    ("rule", "name", KeyDifference::Required(NAME)),
    ("rule", "actor", KeyDifference::Split { single: "actor", other: "actors", is_required: true }),
    ("rule", "rpu", split("rpu", "rpu_from")),
    ("rule", "cost", split("cost", "cost_from")),
    ("rule", "month_starts", split("month_starts", "month_starts_from")),
    ("rule", "plans", split("plans_named", "plans")),
    // The companion divides the callers of a namespace.
    ("rule", "keys", KeyDifference::Absent),
    // The companion knows the number of gateways.
    ("rule", "share", KeyDifference::Only(Allowed::Flag)),
    ("settled_cost", "reserve", split("reserve", "reserve_from")),
];

const fn split(single: &'static str, other: &'static str) -> KeyDifference {
    KeyDifference::Split { single, other, is_required: false }
}

/// Mappings that a document may replace by a word: in the resource the word is a key with `true`.
const WORDS: [(&str, &str); 1] = [("plan", "unlimited")];

/// A key of the resource.
struct ResourceKey {
    name: &'static str,
    /// The key in a document.
    document: &'static str,
    form: ResourceForm,
    is_required: bool,
}

/// The form of a value.
enum ResourceForm {
    /// Anything that is a mapping.
    Any,
    /// A value, of one of these kinds.
    Single(Vec<Allowed>),
    /// A text of this form.
    Text(Allowed),
    /// A mapping with the keys of all these.
    Mapping(Vec<&'static Mapping>),
    /// A list of these items, with its description.
    List(&'static str, Allowed),
    /// A mapping from arbitrary names to these values, with its description.
    Named(&'static str, Allowed),
}

impl fmt::Display for ResourceForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several: Vec<_> = match self {
            ResourceForm::Any => return f.write_str("a mapping"),
            ResourceForm::Text(text) => return text.fmt(f),
            ResourceForm::List(what, _) | ResourceForm::Named(what, _) => return f.write_str(what),
            ResourceForm::Single(kinds) => kinds.iter().map(Allowed::to_string).collect(),
            ResourceForm::Mapping(all) => all.iter().map(|mapping| mapping.what.into()).collect(),
        };
        f.write_str(&several.join(", or "))
    }
}

impl ResourceForm {
    /// The form of a value for which a document allows these.
    fn of(alternatives: &[Allowed]) -> ResourceForm {
        let mut flat = Vec::new();
        alternatives.iter().for_each(|one| flatten(one, &mut flat));
        let mappings = flat.iter().filter_map(Allowed::mapping).collect::<Vec<_>>();
        let list = flat.iter().find_map(|one| match one {
            List(what, item) => Some(ResourceForm::List(what, **item)),
            _ => None,
        });
        let named = flat.iter().find_map(|one| match one {
            Named(what, value) => Some(ResourceForm::Named(what, **value)),
            _ => None,
        });
        match list.or(named) {
            Some(form) => form,
            _ if !mappings.is_empty() => ResourceForm::Mapping(mappings),
            _ if flat.iter().any(|one| matches!(one, Any)) => ResourceForm::Any,
            _ => ResourceForm::Single(flat),
        }
    }
}

fn flatten(allowed: &Allowed, flat: &mut Vec<Allowed>) {
    match allowed {
        Either(several) => several.iter().for_each(|one| flatten(one, flat)),
        one => flat.push(*one),
    }
}

/// The keys of a mapping in the resource, which has `outer` mappings around it. A mapping within
/// itself does not contain itself again.
fn keys(mapping: &'static Mapping, outer: &[&'static str]) -> Vec<ResourceKey> {
    let mut keys = Vec::new();
    for key in mapping.all() {
        let mut flat = Vec::new();
        flatten(&key.allowed, &mut flat);
        let is_it =
            |(of, name, _): &&(&str, &str, KeyDifference)| (*of, *name) == (mapping.name, key.name);
        let of = |name, alternatives: &[Allowed]| ResourceKey {
            name,
            document: key.name,
            form: ResourceForm::of(alternatives),
            is_required: false,
        };
        match DIFFERENCES.iter().find(is_it) {
            Some((.., KeyDifference::Absent)) => {}
            Some((.., KeyDifference::Split { single, other, .. })) => {
                let (others, singles): (Vec<_>, Vec<_>) =
                    flat.into_iter().partition(|one| matches!(one, List(..) | Map(_) | Named(..)));
                keys.extend([of(single, &singles), of(other, &others)]);
            }
            Some((.., KeyDifference::Required(text))) => {
                let form = ResourceForm::Text(*text);
                keys.push(ResourceKey { form, is_required: true, ..of(key.name, &flat) });
            }
            Some((.., KeyDifference::Only(form))) => keys.push(of(key.name, &[*form])),
            None => keys.push(ResourceKey { is_required: key.is_required, ..of(key.name, &flat) }),
        }
    }
    if outer.contains(&mapping.name) {
        keys.retain(|key| !leads_to(&key.form, mapping.name));
    }
    let word = WORDS.iter().find(|(name, _)| *name == mapping.name);
    keys.extend(word.map(|(_, word)| ResourceKey {
        name: word,
        document: word,
        form: ResourceForm::Single(vec![Allowed::Flag]),
        is_required: false,
    }));
    keys
}

fn leads_to(form: &ResourceForm, name: &str) -> bool {
    match form {
        ResourceForm::Mapping(mappings) => mappings.iter().any(|mapping| mapping.name == name),
        ResourceForm::List(_, item) => leads_to(&ResourceForm::of(&[*item]), name),
        _ => false,
    }
}

/// A route that a resource names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyTargetRef {
    /// `HTTPRoute` or `GRPCRoute`.
    pub kind: String,
    /// Its name. It is in the namespace of the resource.
    pub name: String,
}

/// The `spec` of a resource as a document.
#[derive(Debug)]
pub struct PolicyDocument {
    /// Its routes.
    pub targets: Vec<PolicyTargetRef>,
    /// A document with its `limits`, at the positions of the resource.
    pub source: ConfigSource,
}

/// Reads the `spec` of a resource, the only document of `spec`. The values themselves are read with
/// the document.
///
/// # Errors
/// Unknown keys, and values of another form.
pub fn document(spec: &ConfigSource) -> Result<PolicyDocument, Problems> {
    let report = ProblemReport::new(spec, ModuleKind::default(), &[]);
    let mut read = None;
    if let Some(root) = node::roots(&report).first() {
        fields::find_duplicates(root);
        let mut translation =
            Translation { from: &spec.spans, spans: Vec::new(), outer: Vec::new() };
        let tree = translation.value(root, &ResourceForm::Mapping(vec![&SPEC]), 0);
        read = Some((tree, translation.spans));
        let targets = root.get("targetRefs");
        if targets.as_ref().is_some_and(|it| *it.tree() == Tree::List(Vec::new())) {
            root.descend("targetRefs").problem("found no route, allowed: at least one".into());
        }
        for target in targets.iter().flat_map(Node::children) {
            for (key, words) in [("group", &[ROUTE_GROUP][..]), ("kind", &ROUTE_KINDS)] {
                target.get(key).map(|node| node.choice(words, &words.join(", ")));
            }
        }
    }
    match read.filter(|_| report.is_empty()) {
        Some((tree, spans)) => {
            let targets = tree.get("targetRefs").map(targets).unwrap_or_default();
            Ok(PolicyDocument { targets, source: ConfigSource { documents: vec![tree], spans } })
        }
        None => Err(report.into_problems()),
    }
}

/// The path in a resource of a node that its document has at `path`, such as `limits[0].urls` of
/// `limits[0].url`.
#[must_use]
pub fn path(spec: &Tree, path: &str) -> String {
    let mut node = Some(spec);
    let steps = path.split('.').map(|step| {
        let (key, indices) = step.split_at(step.find('[').unwrap_or(step.len()));
        let has = |key: &&str| node.is_some_and(|node| node.get(key).is_some());
        let forms = DIFFERENCES.iter().find_map(|(_, name, difference)| match difference {
            KeyDifference::Split { single, other, .. } if *name == key => Some([*single, *other]),
            _ => None,
        });
        let key = forms.and_then(|forms| forms.into_iter().find(has)).unwrap_or(key);
        node = node.and_then(|node| node.get(key));
        for index in indices.split(['[', ']']).filter_map(|index| index.parse::<usize>().ok()) {
            node = node.and_then(|node| items(node).get(index));
        }
        format!("{key}{indices}")
    });
    steps.collect::<Vec<_>>().join(".")
}

impl PolicyDocument {
    /// The document of the resource's `limits` with the other keys of the platform's document. Without
    /// one, names of actors and plans stand for some of the platform.
    #[must_use]
    pub fn beside(&self, platform: Option<&Tree>) -> ConfigSource {
        let limits = self.pairs().iter().position(|(key, _)| key == LIMITS_KEY).unwrap_or_default();
        let steps = [0, limits];
        let part = self.source.part(&steps);
        let spans =
            [self.source.span_of(&[0]), self.source.key_span_of(&steps)].into_iter().flatten();
        let spans = spans.chain(part.iter().flat_map(|part| part.spans.iter().copied())).collect();
        let limits = part
            .and_then(|part| part.documents.into_iter().next())
            .unwrap_or(Tree::List(Vec::new()));
        let others = match platform {
            Some(Tree::Map(pairs)) => {
                pairs.iter().filter(|(key, _)| is_shared(key)).cloned().collect()
            }
            Some(_) => Vec::new(),
            None => stand_ins(&limits),
        };
        let mut pairs = vec![(LIMITS_KEY.into(), limits)];
        pairs.extend(others);
        ConfigSource { documents: vec![Tree::Map(pairs)], spans }
    }

    fn pairs(&self) -> &[(String, Tree)] {
        match self.source.documents.first() {
            Some(Tree::Map(pairs)) => pairs,
            _ => &[],
        }
    }
}

/// Returns true if a key of the platform's document is also one of policies.
fn is_shared(key: &str) -> bool {
    key != LIMITS_KEY && DOCUMENT.keys.iter().any(|known| known.name == key)
}

/// The actors and plans that rules name, with sources that no client can choose.
fn stand_ins(limits: &Tree) -> Vec<(String, Tree)> {
    let (mut actors, mut plans) = (Vec::new(), Vec::new());
    let rules = items(limits).iter().filter_map(|entry| entry.get("rules")).flat_map(items);
    for rule in rules {
        let actor = rule.get("actor");
        actors.extend(
            actor.into_iter().chain(actor.into_iter().flat_map(items)).filter_map(Tree::text),
        );
        plans.extend(rule.get("plans").and_then(Tree::text));
    }
    let map = |key: &str, value: Tree| Tree::Map(vec![(key.into(), value)]);
    let sources = |name: &str| {
        Tree::List(vec![map("metadata", Tree::List(vec!["platform".into(), name.into()]))])
    };
    let of =
        |names: &mut Vec<&str>, is_known: &dyn Fn(&str) -> bool, value: &dyn Fn(&str) -> Tree| {
            names.sort_unstable();
            names.dedup();
            names.retain(|name| is_name(name) && !is_known(name));
            Tree::Map(names.iter().map(|name| (String::from(*name), value(name))).collect())
        };
    let actors = of(&mut actors, &|name| STANDARD_ACTORS.contains(&name), &sources);
    let plan = |name: &str| {
        let of = map("platform", "unlimited".into());
        Tree::Map(vec![("by".into(), sources(name)), ("of".into(), of)])
    };
    let plans = of(&mut plans, &|_| false, &plan);
    vec![("actors".into(), actors), ("plans".into(), plans)]
}

fn items(tree: &Tree) -> &[Tree] {
    match tree {
        Tree::List(items) => items,
        _ => &[],
    }
}

fn targets(list: &Tree) -> Vec<PolicyTargetRef> {
    let text = |item: &Tree, key| item.get(key).and_then(Tree::text).map(String::from);
    let target =
        |item| Some(PolicyTargetRef { kind: text(item, "kind")?, name: text(item, "name")? });
    items(list).iter().filter_map(target).collect()
}

/// The nodes of a resource as those of a document.
struct Translation<'s> {
    /// The spans of all nodes of the resource.
    from: &'s [NodeSpan],
    /// Those of the document.
    spans: Vec<NodeSpan>,
    /// The mappings around the present node.
    outer: Vec<&'static str>,
}

impl Translation<'_> {
    /// The value of a node. Its span has the number `at`.
    fn value(&mut self, node: &Node<'_>, form: &ResourceForm, at: usize) -> Tree {
        self.spans.extend(self.from.get(at));
        match (form, node.tree()) {
            (ResourceForm::Text(text), tree) => {
                node.fitting(text);
                tree.clone()
            }
            (ResourceForm::Single(_), tree @ (Tree::List(_) | Tree::Map(_))) => {
                node.reject(form);
                tree.clone()
            }
            (ResourceForm::Single(_), tree) | (ResourceForm::Any, tree @ Tree::Map(_)) => {
                self.spans.extend(self.from.get(at + 1..at + nodes(tree)).into_iter().flatten());
                tree.clone()
            }
            (ResourceForm::List(_, item), Tree::List(_)) => {
                let (form, mut at) = (ResourceForm::of(&[*item]), at + 1);
                let mut items = Vec::new();
                for node in node.children() {
                    items.push(self.value(&node, &form, at));
                    at += nodes(node.tree());
                }
                Tree::List(items)
            }
            (ResourceForm::Named(_, value), Tree::Map(pairs)) => {
                let form = ResourceForm::of(&[*value]);
                self.pairs(node, pairs, at, |translation, _, node, at| {
                    (None, translation.value(node, &form, at))
                })
            }
            (ResourceForm::Mapping(mappings), Tree::Map(pairs)) => {
                self.mapping(node, pairs, mappings, at)
            }
            (_, tree) => {
                node.reject(form);
                tree.clone()
            }
        }
    }

    fn mapping(
        &mut self,
        node: &Node<'_>,
        pairs: &[(String, Tree)],
        mappings: &[&'static Mapping],
        at: usize,
    ) -> Tree {
        if let [mapping] = mappings
            && let Some((_, word)) = WORDS.iter().find(|(name, _)| *name == mapping.name)
            && let [(key, Tree::Bool(true))] = pairs
            && key == word
        {
            return (*word).into();
        }
        let known: Vec<_> =
            mappings.iter().flat_map(|mapping| keys(mapping, &self.outer)).collect();
        let names: Vec<_> = known.iter().map(|key| key.name).collect();
        if let [_] = mappings {
            let missing = |key: &&ResourceKey| key.is_required && node.get(key.name).is_none();
            for key in known.iter().filter(missing) {
                node.missing_problem(key.name, format!("required, allowed: {}", key.form));
            }
        }
        self.outer.extend(mappings.iter().map(|mapping| mapping.name));
        let tree = self.pairs(node, pairs, at, |translation, name, node, at| {
            let Some(key) = known.iter().find(|key| key.name == name) else {
                node.unknown_key(name, &names);
                return (None, node.tree().clone());
            };
            let tree = translation.value(node, &key.form, at);
            (Some(key.document), tree)
        });
        self.outer.truncate(self.outer.len() - mappings.len());
        tree
    }

    /// The pairs of a mapping. `value` returns the key in the document, if it differs, and the value.
    fn pairs(
        &mut self,
        node: &Node<'_>,
        pairs: &[(String, Tree)],
        at: usize,
        value: impl Fn(&mut Self, &str, &Node<'_>, usize) -> (Option<&'static str>, Tree),
    ) -> Tree {
        let mut at = at + 1;
        let mut read = Vec::new();
        for ((key, tree), node) in pairs.iter().zip(node.children()) {
            self.spans.extend(self.from.get(at));
            let (renamed, value) = value(self, key, &node, at + 1);
            read.push((renamed.map_or_else(|| key.clone(), String::from), value));
            at += 1 + nodes(tree);
        }
        Tree::Map(read)
    }
}
