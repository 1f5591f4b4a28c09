//! The places of a plugin's configuration in a manifest.

use std::ptr;

use diana_config::outline;
use diana_config::resource::{GROUP, KIND};
use diana_policy::ModuleKind;
use diana_policy::tree::Tree;

/// The form of a configuration in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// As text.
    Text,
    /// As a tree, which the filter receives as a `Struct` or JSON.
    Tree,
    /// As the `spec` of a LimitPolicy.
    Policy,
}

/// A place that may have rules.
#[derive(Debug)]
pub struct Candidate<'t> {
    /// The path to it.
    pub steps: Vec<usize>,
    /// The form of the rules.
    pub holds: Holds,
    /// The value at this place.
    pub tree: &'t Tree,
    /// Whether the surrounding keys name this filter.
    pub is_ours: bool,
    /// The root id and the `vm_id` of a plugin in Envoy's own form.
    pub ids: Option<(&'t str, &'t str)>,
    /// Whether gateways read the rules by `remote`.
    pub is_remote: bool,
    /// The form of the module that reads the rules.
    pub module: ModuleKind,
}

/// Keys next to a configuration that name the filter.
const NAMES: &[&str] = &[
    "name",
    "root_id",
    "rootId",
    "rootID",
    "pluginName",
    "vm_id",
    "vmId",
    "url",
    "filename",
    "filter_name",
    "filterName",
];

/// Keys of Envoy with a configuration, of the wasm module and of the dynamic module, in both
/// spellings that Envoy reads.
const CONFIGURATION: [(&str, ModuleKind); 3] = [
    ("configuration", ModuleKind::Wasm),
    ("filter_config", ModuleKind::Native),
    ("filterConfig", ModuleKind::Native),
];

/// Keys of Envoy with the plugin's ids and its VM.
const ROOT_ID: [&str; 4] = ["root_id", "rootId", "filter_name", "filterName"];
const VM_CONFIG: [&str; 2] = ["vm_config", "vmConfig"];
const VM_ID: [&str; 2] = ["vm_id", "vmId"];

/// The chart's value with rules as text.
const RULES_TEXT: &str = "rulesText";

/// Top-level keys of Envoy's own configuration.
const ENVOY: &[&str] =
    &["static_resources", "staticResources", "dynamic_resources", "dynamicResources", "resources"];

/// Returns true if a document is a manifest: of Kubernetes, Envoy's own configuration, or the
/// values of a Helm chart. In a file that the user named (`is_named`), a mapping `config` is one of
/// rules, also if its keys are unknown.
pub fn is_manifest(tree: &Tree, is_named: bool) -> bool {
    let is_kubernetes = tree.get("apiVersion").is_some() && tree.get("kind").is_some();
    is_envoy(tree) || is_kubernetes || has_values(tree) || is_named && has_config(tree)
}

/// Returns true if a document is Envoy's own configuration.
pub fn is_envoy(tree: &Tree) -> bool {
    ENVOY.iter().any(|key| tree.get(key).is_some())
}

/// Returns true if a document has rules as the chart's value `config` or `rulesText`, also below
/// the name of a chart.
fn has_values(tree: &Tree) -> bool {
    let Tree::Map(pairs) = tree else { return false };
    let is_config = |tree: &Tree| tree.get("config").is_some_and(outline::looks_like_rules);
    let is_here = is_config(tree) || text(tree, RULES_TEXT).is_some_and(|text| !text.is_empty());
    !outline::looks_like_rules(tree)
        && (is_here || pairs.iter().any(|(_, value)| has_values(value)))
}

/// Returns true if a document has a mapping `config`, also below the name of a chart if it resembles
/// rules, and is no rules itself.
fn has_config(tree: &Tree) -> bool {
    !outline::looks_like_rules(tree) && !configs(tree, &[]).is_empty()
}

/// The mappings `config` of a document, as in values of a chart with a wrong key in its rules. Those
/// below other keys may belong to another chart, so they must resemble rules.
fn configs<'t>(tree: &'t Tree, steps: &[usize]) -> Vec<(&'t Tree, Vec<usize>)> {
    let is_mapping = |tree: &Tree| matches!(tree, Tree::Map(pairs) if !pairs.is_empty());
    let mut found: Vec<_> =
        step(tree, steps, "config").filter(|(tree, _)| is_mapping(tree)).into_iter().collect();
    if let Tree::Map(_) = tree {
        for (child, steps) in children(tree, steps) {
            let below = configs(child, &steps).into_iter();
            found.extend(below.filter(|(tree, _)| outline::resembles_rules(tree)));
        }
    }
    found
}

/// The first rules in a document under a key that no chart reads, as a mapping or as text.
pub fn misplaced(tree: &Tree, steps: &[usize]) -> Option<Vec<usize>> {
    let Tree::Map(_) = tree else { return None };
    // Other programs have mappings named `limits`.
    let has_entries = |limits: &Tree| match limits {
        Tree::List(entries) => entries.first().is_some_and(|entry| entry.get("rules").is_some()),
        _ => false,
    };
    let is_rules = |tree: &Tree| {
        tree.get("limits").is_some_and(has_entries)
            || tree.text().is_some_and(super::mentions_rules)
    };
    children(tree, steps).into_iter().find_map(|(child, steps)| {
        if is_rules(child) { Some(steps) } else { misplaced(child, &steps) }
    })
}

/// The places of a document that may have rules. `number` is that of the document.
pub fn candidates(document: &Tree, number: usize, is_named: bool) -> Vec<Candidate<'_>> {
    let mut found = Vec::new();
    of_document(document, vec![number], &mut found);
    // Otherwise the search has found it.
    if is_named && found.is_empty() && document.get("kind").is_none() && has_config(document) {
        let configs = configs(document, &[number]).into_iter();
        found.extend(configs.map(|(tree, steps)| held(Holds::Tree, tree, steps, true)));
    }
    found
}

fn of_document<'t>(tree: &'t Tree, steps: Vec<usize>, found: &mut Vec<Candidate<'t>>) {
    match tree.get("kind").and_then(Tree::text) {
        Some("WasmPlugin") => {
            let Some((spec, steps)) = step(tree, &steps, "spec") else { return };
            let is_ours = names_us(tree) || names_us(spec);
            let config = step(spec, &steps, "pluginConfig");
            found.extend(config.map(|(tree, steps)| held(Holds::Tree, tree, steps, is_ours)));
        }
        Some("EnvoyExtensionPolicy") => {
            let list = step(tree, &steps, "spec").and_then(|(spec, at)| step(spec, &at, "wasm"));
            let Some((list, steps)) = list else { return };
            for (plugin, steps) in children(list, &steps) {
                let config = step(plugin, &steps, "config");
                let is_ours = names_us(plugin);
                found.extend(config.map(|(tree, steps)| held(Holds::Tree, tree, steps, is_ours)));
            }
        }
        Some("ConfigMap") => {
            let Some((data, steps)) = step(tree, &steps, "data") else { return };
            if is_of_companion(tree) {
                let rules = step(data, &steps, "rules.yaml");
                found.extend(rules.map(|(tree, steps)| served(tree, steps)));
                return;
            }
            let texts = children(data, &steps).into_iter();
            found.extend(texts.map(|(tree, steps)| held(Holds::Text, tree, steps, false)));
        }
        Some("TrafficExtension") => {
            let spec = step(tree, &steps, "spec");
            let Some((plugin, steps)) = spec.and_then(|(spec, at)| step(spec, &at, "wasm")) else {
                return;
            };
            let is_ours = names_us(tree) || names_us(plugin);
            let config = step(plugin, &steps, "pluginConfig");
            found.extend(config.map(|(tree, steps)| held(Holds::Tree, tree, steps, is_ours)));
        }
        Some(KIND) if text(tree, "apiVersion").is_some_and(is_group) => {
            let spec = step(tree, &steps, "spec");
            found.extend(spec.map(|(tree, steps)| Candidate {
                is_remote: true,
                ..held(Holds::Policy, tree, steps, true)
            }));
        }
        Some("List") => {
            let Some((items, steps)) = step(tree, &steps, "items") else { return };
            children(items, &steps).into_iter().for_each(|(tree, at)| of_document(tree, at, found));
        }
        _ => of_envoy(tree, steps, found),
    }
}

/// The plugins in Envoy's own configuration or in a patch of it, and the rules in values of a
/// chart.
fn of_envoy<'t>(tree: &'t Tree, steps: Vec<usize>, found: &mut Vec<Candidate<'t>>) {
    let configuration =
        CONFIGURATION.iter().find_map(|(key, module)| Some((*module, step(tree, &steps, key)?)));
    if let Some((module, (config, steps))) = configuration {
        let kind = config.get("@type").and_then(Tree::text).unwrap_or_default();
        let holds = match kind.rsplit('.').next() {
            Some("StringValue") => Some(Holds::Text),
            Some("Struct") => Some(Holds::Tree),
            _ => None,
        };
        let value = holds.zip(step(config, &steps, "value"));
        let is_ours = names_us(tree);
        let either = |tree: &'t Tree, keys: &[&str]| keys.iter().find_map(|key| tree.get(key));
        let id = |tree, keys| either(tree, keys).and_then(Tree::text).unwrap_or_default();
        let vm_id = either(tree, &VM_CONFIG).map_or("", |vm| id(vm, &VM_ID));
        let ids = Some((id(tree, &ROOT_ID), vm_id));
        found.extend(value.map(|(holds, (tree, steps))| Candidate {
            ids,
            module,
            ..held(holds, tree, steps, is_ours)
        }));
    }
    let values = step(tree, &steps, "config").filter(|(tree, _)| outline::looks_like_rules(tree));
    found.extend(values.map(|(tree, steps)| held(Holds::Tree, tree, steps, true)));
    let rules = step(tree, &steps, RULES_TEXT).filter(|(tree, _)| tree.text() != Some(""));
    found.extend(rules.map(|(tree, steps)| served(tree, steps)));
    for (child, steps) in children(tree, &steps) {
        // The VM has a `configuration` of its own, which is not the plugin's.
        if !VM_CONFIG.iter().any(|key| tree.get(key).is_some_and(|vm| ptr::eq(vm, child))) {
            of_envoy(child, steps, found);
        }
    }
}

/// Returns true if an `apiVersion` is of the resources of Diana.
fn is_group(version: &str) -> bool {
    version.split('/').next() == Some(GROUP)
}

fn held(holds: Holds, tree: &Tree, steps: Vec<usize>, is_ours: bool) -> Candidate<'_> {
    let module = ModuleKind::Wasm;
    Candidate { steps, holds, tree, is_ours, ids: None, is_remote: false, module }
}

/// A text of rules that the companion serves.
fn served(tree: &Tree, steps: Vec<usize>) -> Candidate<'_> {
    Candidate { is_remote: true, ..held(Holds::Text, tree, steps, true) }
}

/// Returns true if an object is part of the companion of our chart.
fn is_of_companion(object: &Tree) -> bool {
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    labels.is_some_and(|labels| {
        text(labels, "app.kubernetes.io/name") == Some("diana")
            && text(labels, "app.kubernetes.io/component") == Some("companion")
    })
}

/// Returns true if a mapping, or its description of the code, names this filter.
pub fn names_us(tree: &Tree) -> bool {
    let is_ours = |key: &&str| {
        text(tree, key).is_some_and(|text| text.to_ascii_lowercase().contains("diana"))
    };
    let inner = VM_CONFIG.iter().chain(&["code", "local", "metadata", "image", "http"]);
    NAMES.iter().any(is_ours) || inner.filter_map(|key| tree.get(key)).any(names_us)
}

/// The text of a key.
pub fn text<'t>(tree: &'t Tree, key: &str) -> Option<&'t str> {
    tree.get(key).and_then(Tree::text)
}

/// The value of a key, and the path to it.
pub fn step<'t>(tree: &'t Tree, steps: &[usize], key: &str) -> Option<(&'t Tree, Vec<usize>)> {
    let Tree::Map(pairs) = tree else { return None };
    let position = pairs.iter().position(|(name, _)| name == key)?;
    Some((&pairs.get(position)?.1, [steps, &[position]].concat()))
}

/// The values of a list or mapping, and the paths to them.
pub fn children<'t>(tree: &'t Tree, steps: &[usize]) -> Vec<(&'t Tree, Vec<usize>)> {
    let trees: Vec<&Tree> = match tree {
        Tree::List(items) => items.iter().collect(),
        Tree::Map(pairs) => pairs.iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    };
    trees.into_iter().enumerate().map(|(at, tree)| (tree, [steps, &[at]].concat())).collect()
}
