//! The names that a control plane gives to routes.

use diana_config::resource::PolicyTargetRef;
use diana_policy::tree::Tree;

use crate::objects::{AttachedRoute, Plane};

/// The tests of a condition `route` that hold for a route only, or the remedy if its names could be
/// those of another one.
pub fn tests(
    plane: Plane,
    route: &AttachedRoute,
    all: &[AttachedRoute],
) -> Result<Vec<Tree>, String> {
    let AttachedRoute { namespace, target: PolicyTargetRef { kind, name }, rules } = route;
    match plane {
        // Neither a namespace nor a name has a slash.
        Plane::EnvoyGateway => {
            let prefix = format!("{}/{namespace}/{name}/", kind.to_lowercase());
            Ok(vec![Tree::Map(vec![("prefix".into(), Tree::Text(prefix))])])
        }
        Plane::Istio => {
            if let Some(rule) = rules.iter().flatten().next() {
                return Err(format!(
                    "the {kind} `{name}` has a rule with the name `{rule}`, which is the name of the route in Istio, and \
                     other teams can choose it, too; remove the names of its rules"
                ));
            }
            let is_other = |other: &&AttachedRoute| {
                other.namespace == *namespace
                    && other.target.name == *name
                    && other.target.kind != *kind
            };
            if let Some(other) = all.iter().find(is_other) {
                return Err(format!(
                    "the {kind} `{name}` and the {} of this name have the same names of routes in Istio; rename one of them",
                    other.target.kind
                ));
            }
            Ok((0..rules.len())
                .map(|rule| Tree::Text(format!("{namespace}.{name}.{rule}")))
                .collect())
        }
    }
}

/// Restricts an entry to routes that pass one of these tests.
pub fn restrict(entry: Tree, tests: &[Tree]) -> Tree {
    let Tree::Map(mut pairs) = entry else { return entry };
    let route = || ("route".into(), Tree::List(tests.to_vec()));
    let restricted = |block: Tree| match block {
        Tree::Map(mut keys) => {
            keys.retain(|(key, _)| key != "route");
            keys.push(route());
            Tree::Map(keys)
        }
        other => other,
    };
    let position = pairs.iter().position(|(key, _)| key == "match");
    let blocks = match position.map(|at| pairs.remove(at).1) {
        Some(Tree::List(blocks)) => blocks,
        Some(block) => vec![block],
        None => Vec::new(),
    };
    let mut blocks: Vec<Tree> = blocks.into_iter().map(restricted).collect();
    // No block at all would hold for every request.
    if blocks.is_empty() {
        blocks.push(Tree::Map(vec![route()]));
    }
    pairs.push(("match".into(), Tree::List(blocks)));
    Tree::Map(pairs)
}
