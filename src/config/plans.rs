//! `plans`: other numbers for other callers, as they are written beside a rule or under a name. What they mean to a
//! rule stands in `rule/plans.rs`.

use crate::actors;
use crate::fields::Fields;
use crate::node::Node;
use crate::table::rule::{PLAN, PLANS};
use crate::values;
use diana_policy::IdentitySource;
use diana_policy::tree::Tree;

const NAME: &str = "1 … 64 visible ASCII characters, but not `own`, which has a meaning of its own";
const VALUE: &str = "1 … 255 bytes";

/// Most plans of a rule.
const MOST: usize = 10_000;

/// Plans as they are written.
#[derive(Debug)]
pub struct Draft<'a> {
    /// Where a request says which one it has, and whether callers choose that; without it the caller's own value does.
    pub by: Option<(Vec<IdentitySource>, bool)>,
    /// The plans.
    pub of: Vec<Written<'a>>,
}

/// One plan as it is written.
#[derive(Debug)]
pub struct Written<'a> {
    /// The value that chooses it.
    pub name: &'a str,
    /// Where it stands.
    pub node: Node<'a>,
    /// What it says; nothing if it is unlimited.
    pub fields: Option<Fields<'a>>,
}

/// Reads the plans that have names.
pub fn named<'a>(top: &Fields<'a>) -> Vec<(&'a str, Option<Draft<'a>>)> {
    let mut all = Vec::new();
    for (name, node) in top.named("plans") {
        if !values::is_name(name) {
            node.key_problem(format!("not a name, allowed: {}", values::NAME));
        }
        all.push((name, draft(&node)));
    }
    all
}

/// Has `use_it` see the plans of a rule, which stand there or under a name among `all` that have one.
pub fn with<T>(
    node: &Node<'_>,
    all: &[(&str, Option<Draft<'_>>)],
    use_it: impl FnOnce(&Draft<'_>) -> Option<T>,
) -> Option<T> {
    let Tree::Text(name) = node.tree() else { return use_it(&draft(node)?) };
    let Some((_, named)) = all.iter().find(|(known, _)| known == name) else {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let allowed = match names.as_slice() {
            [] => "a mapping, since there are no `plans` at the top".into(),
            names => format!("a mapping, {}", names.join(", ")),
        };
        node.unknown_name(name, &names, &allowed);
        return None;
    };
    use_it(named.as_ref()?)
}

fn draft<'a>(node: &Node<'a>) -> Option<Draft<'a>> {
    let fields = Fields::read(node, &PLANS)?;
    let by = fields.get("by").map(|node| {
        let built = actors::sources(node);
        let is_chosen = built.iter().any(|(_, source)| source.is_caller_chosen());
        (built.into_iter().map(|(wanted, _)| wanted).collect(), is_chosen)
    });
    let of = fields.node("of")?;
    let pairs = of.pairs(&fields.allowed("of"))?;
    if !(1..=MOST).contains(&pairs.len()) {
        of.problem(format!("found {} plans, allowed: 1 … {MOST}", pairs.len()));
        return None;
    }
    let is_named = by.is_some();
    let of = pairs.into_iter().map(|(name, node)| plan(name, node, is_named));
    // All of them, so that each tells its problems.
    let of: Vec<_> = of.collect();
    Some(Draft { by, of: of.into_iter().collect::<Option<_>>()? })
}

fn plan<'a>(name: &'a str, node: Node<'a>, is_named: bool) -> Option<Written<'a>> {
    let is_visible = name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_graphic());
    let fits = if is_named { is_visible && name != "own" } else { name.len() <= 255 };
    if name.is_empty() || !fits {
        let allowed = if is_named { NAME } else { VALUE };
        node.key_problem(format!("not the name of a plan, allowed: {allowed}"));
        return None;
    }
    if node.tree().text() == Some("unlimited") {
        return Some(Written { name, node, fields: None });
    }
    let fields = Fields::read(&node, &PLAN)?;
    if *node.tree() == Tree::Map(Vec::new()) {
        node.problem(format!("found an empty mapping, allowed: {PLAN}"));
        return None;
    }
    Some(Written { name, node, fields: Some(fields) })
}
