//! Rules in files: plain, or in the manifests of a proxy.

pub mod attached;
mod walk;

use diana_config::difference::{self, Difference};
use diana_config::problem::{Position, Problem};
use diana_config::{ConfigSource, Dialect, outline, resource};
use diana_policy::ModuleKind;
use diana_policy::tree::Tree;

use crate::view::FilePart;
use walk::{Candidate, Holds};

/// Maximum nesting of texts in texts: a ConfigMap with Envoy's configuration with rules.
const MAX_DEPTH: usize = 3;

/// Rules found in a file.
#[derive(Debug)]
pub struct FoundRules {
    /// Their position.
    pub part: FilePart,
    /// The rules as the proxy receives them, or their problems.
    pub source: Result<ConfigSource, Vec<Problem>>,
    /// Keys and values that the reader of the manifest reads differently from Diana.
    pub differences: Vec<Difference>,
    /// The plugin, in Envoy's own configuration.
    pub plugin: Option<EnvoyPlugin>,
    /// Whether gateways read the rules by `remote`.
    pub is_remote: bool,
    /// The form of the module that reads them.
    pub module: ModuleKind,
    /// Whether they are the rules of a LimitPolicy.
    pub is_policy: bool,
}

/// A plugin of an Envoy.
#[derive(Debug, Clone)]
pub struct EnvoyPlugin {
    /// The position of Envoy's configuration.
    pub envoy: Position,
    /// Names the rules, unless they have a `namespace`.
    pub root_id: String,
    /// Plugins with the same one have the same shared data.
    pub vm_id: String,
}

impl FoundRules {
    fn new(part: &FilePart, source: Result<ConfigSource, Vec<Problem>>) -> FoundRules {
        FoundRules {
            part: part.clone(),
            source,
            differences: Vec::new(),
            plugin: None,
            is_remote: false,
            module: ModuleKind::Wasm,
            is_policy: false,
        }
    }
}

/// All rules in a file. A file that the user named (`is_named`), and that is not a manifest, must
/// consist of rules. A LimitPolicy is read with the `platform`'s document.
pub fn find(
    part: &FilePart,
    text: &str,
    is_named: bool,
    platform: Option<&Tree>,
) -> Vec<FoundRules> {
    find_nested(part, text, (is_named, MAX_DEPTH), platform)
}

fn find_nested(
    part: &FilePart,
    text: &str,
    (is_named, depth): (bool, usize),
    platform: Option<&Tree>,
) -> Vec<FoundRules> {
    let source = match ConfigSource::read(text.as_bytes()) {
        Ok(source) => source,
        Err(problems) if is_named || mentions_rules(text) => {
            return vec![FoundRules::new(part, Err(problems.list().to_vec()))];
        }
        Err(_) => return Vec::new(),
    };
    let documents = source.documents();
    if !documents.iter().any(|document| walk::is_manifest(document, is_named)) {
        let is_rules = documents.iter().any(outline::looks_like_rules);
        if let Some(problem) = misplaced(&source).filter(|_| is_named && !is_rules) {
            return vec![FoundRules::new(part, Err(vec![problem]))];
        }
        let is_rules = is_named || is_rules;
        return is_rules.then(|| FoundRules::new(part, Ok(source))).into_iter().collect();
    }
    let read = |dialect| ConfigSource::read_as(text.as_bytes(), dialect).ok();
    // Envoy reads JSON as it is.
    let is_json = text.trim_start().starts_with('{');
    let envoy = read(if is_json { Dialect::Diana } else { Dialect::Envoy });
    let kubernetes = read(Dialect::Kubernetes);
    let manifest = Manifest { part, source, kubernetes, envoy, depth, platform };
    let documents = manifest.source.documents();
    let mut found = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        if walk::is_manifest(document, is_named) {
            let candidates = walk::candidates(document, number, is_named);
            let envoy = manifest.source.position_of(&[number]).filter(|_| walk::is_envoy(document));
            for one in &candidates {
                let plugin = envoy.zip(one.ids).map(|(at, (root_id, vm_id))| EnvoyPlugin {
                    envoy: part.in_file(at, None).0,
                    root_id: root_id.into(),
                    vm_id: vm_id.into(),
                });
                let rules = manifest.rules(document, one).into_iter();
                found.extend(rules.map(|rules| FoundRules {
                    plugin: plugin.clone(),
                    is_remote: one.is_remote || rules.is_remote,
                    module: one.module,
                    ..rules
                }));
            }
        } else if outline::looks_like_rules(document) {
            found.push(FoundRules::new(part, manifest.source.part(&[number]).ok_or_else(Vec::new)));
        }
    }
    found
}

/// A text with manifests.
struct Manifest<'m> {
    part: &'m FilePart,
    source: ConfigSource,
    /// The same text as others read it.
    kubernetes: Option<ConfigSource>,
    envoy: Option<ConfigSource>,
    depth: usize,
    platform: Option<&'m Tree>,
}

impl Manifest<'_> {
    /// The rules at a place of a document.
    fn rules(&self, document: &Tree, place: &Candidate<'_>) -> Vec<FoundRules> {
        let Manifest { part, source, depth, platform, .. } = self;
        let is_rules = place.is_ours || outline::looks_like_rules(place.tree);
        match (place.holds, place.tree) {
            (Holds::Text, Tree::Text(text)) => {
                let Some(span) = source.span_of(&place.steps).filter(|_| *depth > 0) else {
                    return Vec::new();
                };
                find_nested(&part.scalar(span, text), text, (place.is_ours, depth - 1), *platform)
            }
            (Holds::Policy, _) => {
                let found = self.read_by_proxy(document, &place.steps);
                let policy = |spec| resource::document(&spec).map_err(|it| it.list().to_vec());
                let source = found.source.and_then(policy).map(|it| it.beside(*platform));
                vec![FoundRules { source, is_policy: true, ..found }]
            }
            (Holds::Tree, Tree::Map(_) | Tree::List(_)) if is_rules => {
                vec![self.read_by_proxy(document, &place.steps)]
            }
            _ => Vec::new(),
        }
    }

    /// The rules at a place as the reader of the document passes them on.
    fn read_by_proxy(&self, document: &Tree, steps: &[usize]) -> FoundRules {
        let reader = if walk::is_envoy(document) { &self.envoy } else { &self.kubernetes };
        let read = reader.as_ref().and_then(|reader| reader.part(steps));
        let differences = self.source.part(steps).zip(read.as_ref());
        let differences = differences.map(|(diana, read)| difference::find(&diana, read));
        FoundRules {
            differences: differences.unwrap_or_default(),
            ..FoundRules::new(self.part, read.ok_or_else(Vec::new))
        }
    }
}

/// The problem of rules under a key that no chart reads, in a file that is neither rules nor a
/// manifest.
fn misplaced(source: &ConfigSource) -> Option<Problem> {
    let documents = source.documents().iter().enumerate();
    let steps = documents.clone().find_map(|(number, tree)| walk::misplaced(tree, &[number]))?;
    let (position, end) = source.key_span_of(&steps).unzip();
    Some(Problem {
        id: "invalid-key",
        position,
        end,
        path: source.path_of(&steps),
        message: "found rules under this key, which is none of a document and none of the chart's values; the chart reads them as \
                  `config`, or as text as `rulesText`, and a file of rules begins with `limits`"
            .into(),
    })
}

/// Returns true if an unparsable text was probably meant to be rules.
fn mentions_rules(text: &str) -> bool {
    let has =
        |key: &str| text.lines().any(|line| line.trim_start_matches([' ', '-']).starts_with(key));
    has("limits:") || has("rules:") && (has("Url:") || has("url:"))
}
