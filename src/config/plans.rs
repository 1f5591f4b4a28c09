//! `plans` as written, in a rule or under a name. `rule/plans.rs` converts them for a rule.

use crate::actors::{self, SOURCES};
use crate::fields::Fields;
use crate::instant::INSTANT;
use crate::mapping::Allowed::{self, Choice, Either, Map, Named, Text, Whole};
use crate::mapping::{Mapping, mapping, optional, required};
use crate::node::Node;
use crate::rule::algo::of_algorithms;
use crate::rule::in_flight;
use crate::values;
use diana_policy::IdentitySource;
use diana_policy::MAX_PERMITS;
use diana_policy::tree::Tree;

/// `plans` of a rule.
pub const PLANS: Allowed =
    Either(&[Map(&NAMED_PLANS), Text("a name of the top-level `plans`", |_| true)]);

/// `plans` with a name at the top.
pub static NAMED_PLANS: Mapping = mapping(
    "plans",
    "a mapping such as `{by: […], of: {gold: {rpu: 1000}, free: {rpu: 10}}}`",
    &[
        optional("by", SOURCES),
        required(
            "of",
            Named(
                "a mapping such as `{gold: {rpu: 1000}, free: {rpu: 10}, internal: unlimited}`",
                &PLAN,
            ),
        ),
        optional("other", Choice(|| vec!["unlimited"])),
    ],
);

/// A plan.
pub const PLAN: Allowed = Either(&[Choice(|| vec!["unlimited"]), Map(&NUMBERS)]);

static NUMBERS: Mapping = Mapping {
    name: "plan",
    what: "a mapping such as `{rpu: 1000, burst: 2000}`",
    keys: &[
        optional("rpu", Whole(0, MAX_PERMITS)),
        optional("in_flight", in_flight::LIMIT),
        optional("cost", Map(&RESERVE)),
        optional("until", INSTANT),
    ],
    more: || of_algorithms(|setting| setting.by_plan),
};

static RESERVE: Mapping = mapping(
    "plan_cost",
    "a mapping such as `{reserve: 100}`",
    &[required("reserve", Whole(1, MAX_PERMITS))],
);

const NAME: &str = "1 … 64 visible ASCII characters, except `own`, which is reserved";
const VALUE: &str = "1 … 255 bytes";

/// Maximum number of plans of a rule.
const MOST: usize = 10_000;

/// Plans as written.
#[derive(Debug)]
pub struct PlanDraft<'a> {
    /// The sources of a request's plan, and whether clients choose their values. `None` uses the
    /// value that identifies the caller.
    pub by: Option<(Vec<IdentitySource>, bool)>,
    /// The plans.
    pub of: Vec<Written<'a>>,
    /// The node of `other: unlimited`, if the rule applies only under the plans.
    pub other: Option<Node<'a>>,
}

/// A plan as written.
#[derive(Debug)]
pub struct Written<'a> {
    /// The value that selects it.
    pub name: &'a str,
    /// Its node.
    pub node: Node<'a>,
    /// Its keys. `None` if it is unlimited.
    pub fields: Option<Fields<'a>>,
}

/// Reads the named plans.
pub fn named<'a>(top: &Fields<'a>) -> Vec<(&'a str, Option<PlanDraft<'a>>)> {
    let mut all = Vec::new();
    for (name, node) in top.named("plans") {
        if !values::is_name(name) {
            node.key_problem(format!("not a valid name, allowed: {}", values::NAME));
        }
        all.push((name, draft(&node)));
    }
    all
}

/// Calls `use_it` with the plans of a rule, which are written in the rule, or named and listed in
/// `all`.
pub fn with<T>(
    node: &Node<'_>,
    all: &[(&str, Option<PlanDraft<'_>>)],
    use_it: impl FnOnce(&PlanDraft<'_>) -> Option<T>,
) -> Option<T> {
    let Tree::Text(name) = node.tree() else { return use_it(&draft(node)?) };
    let Some((_, named)) = all.iter().find(|(known, _)| known == name) else {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let allowed = match names.as_slice() {
            [] => "a mapping, since there are no top-level `plans`".into(),
            names => format!("a mapping, {}", names.join(", ")),
        };
        node.unknown_name(name, &names, &allowed);
        return None;
    };
    use_it(named.as_ref()?)
}

fn draft<'a>(node: &Node<'a>) -> Option<PlanDraft<'a>> {
    let fields = Fields::read(node, &PLANS)?;
    let by = fields.get("by").map(|node| {
        let built = actors::sources(node);
        if built.iter().any(|(_, source)| source.path_param().is_some()) {
            node.problem(
                "`path_param` is for actors; without `by` the actor's value selects the plan"
                    .into(),
            );
        }
        let is_chosen = built.iter().any(|(_, source)| source.is_caller_chosen());
        (built.into_iter().map(|(wanted, _)| wanted).collect(), is_chosen)
    });
    let other = match fields.get("other") {
        Some(node) => {
            node.choice(&["unlimited"], &fields.allowed("other"))?;
            Some(node.clone())
        }
        None => None,
    };
    let of = fields.node("of")?;
    let pairs = of.pairs(&fields.allowed("of"))?;
    if !(1..=MOST).contains(&pairs.len()) {
        of.problem(format!("found {} plans, allowed: 1 … {MOST}", pairs.len()));
        return None;
    }
    let is_named = by.is_some();
    let of = pairs.into_iter().map(|(name, node)| plan(name, node, is_named));
    // Collects all of them first, so that each reports its problems.
    let of: Vec<_> = of.collect();
    Some(PlanDraft { by, of: of.into_iter().collect::<Option<_>>()?, other })
}

fn plan<'a>(name: &'a str, node: Node<'a>, is_named: bool) -> Option<Written<'a>> {
    let is_visible = name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_graphic());
    let fits = if is_named { is_visible && name != "own" } else { name.len() <= 255 };
    if name.is_empty() || !fits {
        let allowed = if is_named { NAME } else { VALUE };
        node.key_problem(format!("not a valid plan name, allowed: {allowed}"));
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
    if let [("until", until)] = fields.pairs() {
        until
            .key_problem("has no effect alone; write the numbers that hold until then, too".into());
        return None;
    }
    Some(Written { name, node, fields: Some(fields) })
}
