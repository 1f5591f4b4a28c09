//! Policies of Envoy Gateway and the routes that they may be attached to.

use diana_config::ConfigSource;
use diana_config::problem::Position;
use diana_policy::tree::Tree;

use super::walk::{children, names_us, step, text};
use crate::view::FilePart;

/// A name with its kind and namespace. Two objects without a namespace are in the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// Such as `HTTPRoute`.
    pub kind: String,
    /// Its namespace, if the manifest has it.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// A target of a policy.
#[derive(Debug)]
pub struct PolicyTarget {
    /// The object.
    pub object: ObjectName,
    /// Whether the policy is only for one listener of a Gateway, or one rule of a route.
    pub is_section: bool,
}

/// An EnvoyExtensionPolicy.
#[derive(Debug)]
pub struct ExtensionPolicy {
    /// Its file.
    pub part: FilePart,
    /// Its begin, and its end.
    pub span: Option<(Position, Option<Position>)>,
    /// Its name.
    pub name: String,
    /// Its targets that are named. Targets by labels are unknown.
    pub targets: Vec<PolicyTarget>,
    /// Whether one of its modules is Diana.
    pub has_diana: bool,
    /// Whether it is merged with the policy of the Gateway.
    pub is_merged: bool,
}

/// A route, or a set of listeners.
#[derive(Debug)]
pub struct Attached {
    /// The route.
    pub object: ObjectName,
    /// The Gateways and sets of listeners that it names.
    pub parents: Vec<ObjectName>,
}

/// The policies, routes and replicas of all files.
#[derive(Debug, Default)]
pub struct Objects {
    /// The policies.
    pub policies: Vec<ExtensionPolicy>,
    /// The routes.
    pub routes: Vec<Attached>,
    /// Whether a manifest, or the values of a chart, have more than one replica.
    pub has_replicas: bool,
}

/// Keys with a number of replicas: of Deployments and autoscalers, of Envoy Gateway, and of values of charts.
const REPLICAS: [&str; 4] = ["replicas", "minReplicas", "maxReplicas", "replicaCount"];

impl Objects {
    /// Adds those of a file.
    pub fn collect(&mut self, part: &FilePart) {
        // Unreadable text is reported where rules are read.
        let Ok(source) = ConfigSource::read(part.view.text.as_bytes()) else { return };
        for (number, document) in source.documents().iter().enumerate() {
            self.has_replicas |= has_replicas(document);
            self.add(part, &source, document, vec![number]);
        }
    }

    fn add(&mut self, part: &FilePart, source: &ConfigSource, object: &Tree, steps: Vec<usize>) {
        let Some(kind) = text(object, "kind") else { return };
        if kind == "List" {
            let items = step(object, &steps, "items");
            for (item, steps) in items.map(|(list, at)| children(list, &at)).unwrap_or_default() {
                self.add(part, source, item, steps);
            }
            return;
        }
        let Some(spec) = object.get("spec") else { return };
        let Some(name) = object.get("metadata").and_then(|metadata| text(metadata, "name")) else {
            return;
        };
        let namespace = object.get("metadata").and_then(|metadata| text(metadata, "namespace"));
        let references = |list: &str, one: &str| {
            let listed = spec.get(list).map(|list| children(list, &[])).unwrap_or_default();
            listed.into_iter().map(|(item, _)| item).chain(spec.get(one)).collect::<Vec<_>>()
        };
        if kind == "EnvoyExtensionPolicy" {
            let targets = references("targetRefs", "targetRef");
            let modules = spec.get("wasm").map(|list| children(list, &[])).unwrap_or_default();
            self.policies.push(ExtensionPolicy {
                part: part.clone(),
                span: source.span_of(&steps).map(|(begin, end)| (begin, Some(end))),
                name: name.into(),
                targets: targets.iter().filter_map(|target| targeted(target, namespace)).collect(),
                has_diana: modules.iter().any(|(module, _)| names_us(module)),
                is_merged: spec.get("mergeType").is_some(),
            });
        } else if kind.ends_with("Route") || kind == "ListenerSet" {
            let parents = references("parentRefs", "parentRef");
            let object = ObjectName {
                kind: kind.into(),
                namespace: namespace.map(Into::into),
                name: name.into(),
            };
            let parents = parents.iter().filter_map(|parent| parent_of(parent, namespace));
            self.routes.push(Attached { object, parents: parents.collect() });
        }
    }
}

/// Returns true if there are more than one somewhere in a document.
fn has_replicas(tree: &Tree) -> bool {
    let is_many = |key| matches!(tree.get(key), Some(Tree::Int(number)) if *number > 1);
    REPLICAS.iter().any(|key| is_many(key))
        || children(tree, &[]).iter().any(|(child, _)| has_replicas(child))
}

fn targeted(target: &Tree, namespace: Option<&str>) -> Option<PolicyTarget> {
    let object = named(target, text(target, "kind")?, namespace)?;
    Some(PolicyTarget { object, is_section: target.get("sectionName").is_some() })
}

fn parent_of(parent: &Tree, namespace: Option<&str>) -> Option<ObjectName> {
    let namespace = text(parent, "namespace").or(namespace);
    named(parent, text(parent, "kind").unwrap_or("Gateway"), namespace)
}

fn named(reference: &Tree, kind: &str, namespace: Option<&str>) -> Option<ObjectName> {
    let name = text(reference, "name")?.into();
    Some(ObjectName { kind: kind.into(), namespace: namespace.map(Into::into), name })
}
