//! Annotations of Ingress objects that the community's ingress-nginx reads, with its ConfigMap.
//!
//! The controller makes up to three zones for an Ingress, which all of its hosts and paths share:
//! of requests a second, of requests a minute, and of connections. Its generated location has
//! `limit_req … burst=N·m nodelay`, which is a token bucket of N·m + 1 permits.

mod annotations;

use diana_policy::tree::Tree;
use hashbrown::{HashMap, HashSet};

use super::{FormatReader, ImportFormat};
use crate::ingress_classes::{IngressClasses, class_of};
use crate::key::KeySource;
use crate::manifest::{ManifestNode, ManifestObject};
use crate::nginx::model::{ConnectionLimit, KeyReader, PlaceModel, RequestLimit, RequestRate};
use crate::nginx::variables;
use crate::outcome::{
    Imported, ImportedEntry, ImportedObject, ImportedRule, Notes, RuleDifferences,
};
use crate::routes::{Covered, HostPath, PathKind, Routes};
use crate::source::Origin;
use annotations::IngressLimits;

/// `ingress-nginx` in the registry.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "ingress-nginx", reader: || Box::<IngressReader>::default() };

/// The prefix of the controller's annotations, unless an argument of it names another one.
const DEFAULT_PREFIX: &str = "nginx.ingress.kubernetes.io";

/// Names of classes of well-known other controllers.
const OTHER_CLASSES: [&str; 14] = [
    "alb",
    "apisix",
    "azure-application-gateway",
    "cilium",
    "contour",
    "gce",
    "gce-internal",
    "haproxy",
    "higress",
    "istio",
    "kong",
    "openshift-default",
    "traefik",
    "tailscale",
];

/// The controller's name in an IngressClass.
const CONTROLLER: &str = "k8s.io/ingress-nginx";

/// The relevant parts of an Ingress.
#[derive(Debug)]
struct Ingress {
    origin: Origin,
    /// `<namespace>/<name>`.
    name: String,
    /// When it was created, as RFC 3339 writes it, so that texts order as times.
    created: Option<String>,
    class: Option<(String, Origin)>,
    /// All annotations that may have to do with limits or routes.
    annotations: Vec<Annotation>,
    /// The paths of each host. An empty host stands for all.
    paths: Vec<HostPath>,
}

/// An annotation.
#[derive(Debug, Clone)]
struct Annotation {
    key: String,
    /// Its text; none if it is no text, which Kubernetes refuses.
    text: Option<String>,
    /// Its value for readers.
    value: String,
    origin: Origin,
}

/// A key of the controller's ConfigMap.
type ControllerSetting = (String, Origin);

#[derive(Default)]
struct IngressReader {
    ingresses: Vec<Ingress>,
    /// The controller's ConfigMap.
    settings: HashMap<String, ControllerSetting>,
    prefix: Option<String>,
    classes: IngressClasses,
}

/// Keys of a ConfigMap that only this controller has.
const SETTINGS: [&str; 13] = [
    "limit-req-status-code",
    "limit-conn-status-code",
    "limit-conn-zone-variable",
    "limit-rate",
    "limit-rate-after",
    "use-forwarded-headers",
    "use-proxy-protocol",
    "enable-real-ip",
    "http-snippet",
    "server-snippet",
    "location-snippet",
    "global-rate-limit-memcached-host",
    "global-rate-limit-status-code",
];

impl FormatReader for IngressReader {
    fn object(&mut self, object: &ManifestObject) -> bool {
        let root = object.root();
        match root.text_of("kind") {
            Some("Ingress") => {
                let ingress = Ingress::read(&root);
                let is_relevant = ingress.is_of_controller();
                if ingress.has_own() {
                    self.classes.add_community(ingress.class_name());
                }
                self.ingresses.push(ingress);
                is_relevant
            }
            Some("IngressClass") => self.classes.read(&root) == Some(CONTROLLER),
            Some("ConfigMap") => self.settings(&root),
            Some("Deployment" | "DaemonSet" | "StatefulSet" | "Pod") => self.arguments(&root),
            _ => false,
        }
    }

    fn finish(self: Box<Self>) -> Imported {
        self.import()
    }
}

impl IngressReader {
    /// Reads the ConfigMap, if it is the controller's.
    fn settings(&mut self, root: &ManifestNode<'_>) -> bool {
        let data = root.get("data").map(|data| data.pairs()).unwrap_or_default();
        let known = data.iter().filter(|(key, _)| SETTINGS.contains(key));
        let before = self.settings.len();
        for (key, node) in known {
            if let Some(text) = node.tree().text() {
                self.settings.insert((*key).into(), (text.into(), node.origin()));
            }
        }
        self.settings.len() > before
    }

    /// Reads `--annotations-prefix` of the controller.
    fn arguments(&mut self, root: &ManifestNode<'_>) -> bool {
        let containers =
            ["spec.template.spec.containers", "spec.containers"].map(|path| root.descend(path));
        let containers = containers.into_iter().flatten().flat_map(|it| it.items());
        let arguments = containers.filter_map(|it| it.get("args")).flat_map(|it| it.items());
        let is_prefix = |argument: ManifestNode<'_>| {
            argument.tree().text()?.strip_prefix("--annotations-prefix=").map(str::to_owned)
        };
        let found = arguments.filter_map(is_prefix).next_back();
        let is_found = found.is_some();
        self.prefix = found.or(self.prefix.take());
        is_found
    }

    /// The prefix of annotations: the controller's argument, or the only other one that has limits
    /// if the default one has none.
    fn prefix(&self, gaps: &mut Notes) -> String {
        if let Some(prefix) = &self.prefix {
            return prefix.clone();
        }
        let mut others: Vec<(&str, &Annotation)> = Vec::new();
        for annotation in self.ingresses.iter().flat_map(|it| &it.annotations) {
            let Some((prefix, name)) = annotation.key.rsplit_once('/') else { continue };
            if !annotations::LIMITS.contains(&name) {
                continue;
            }
            if prefix == DEFAULT_PREFIX {
                return DEFAULT_PREFIX.into();
            }
            if !others.iter().any(|(other, _)| *other == prefix) {
                others.push((prefix, annotation));
            }
        }
        match others.as_slice() {
            [(prefix, annotation)] => {
                let reason = format!(
                    "taken for the controller's `--annotations-prefix`, since no annotation of a limit has the prefix `{DEFAULT_PREFIX}`"
                );
                gaps.add(annotation.origin.clone(), format!("the prefix `{prefix}`"), reason);
                (*prefix).into()
            }
            _ => DEFAULT_PREFIX.into(),
        }
    }

    fn import(mut self) -> Imported {
        let mut imported = Imported::default();
        let prefix = self.prefix(&mut imported.gaps);
        // The oldest Ingress has a path that several have.
        self.ingresses.sort_by(|one, other| {
            let key = |it: &Ingress| (it.created.is_none(), it.created.clone());
            key(one).cmp(&key(other))
        });
        let served: Vec<Ingress> = std::mem::take(&mut self.ingresses)
            .into_iter()
            .filter(|ingress| self.is_served(ingress, &prefix, &mut imported.inert))
            .collect();
        let status = |key: &str, gaps: &mut Notes| {
            let Some((text, origin)) = self.settings.get(key) else { return 503 };
            let status = text.trim().parse().ok().filter(|status| (400..=599).contains(status));
            status.unwrap_or_else(|| {
                let reason = "found no status from 400 to 599; 503 is written instead";
                gaps.add(origin.clone(), format!("{key}: {text}"), reason);
                503
            })
        };
        let statuses = Statuses {
            requests: status("limit-req-status-code", &mut imported.gaps),
            connections: status("limit-conn-status-code", &mut imported.gaps),
        };
        self.setting_gaps(&mut imported.gaps);
        let key = self.key(&mut imported.gaps);
        let limits: Vec<IngressLimits> = served
            .iter()
            .map(|ingress| {
                let is_f5 = self.classes.is_f5(ingress.class_name());
                let limits = annotations::read(&prefix, &ingress.annotations, is_f5, &mut imported);
                ingress.without_canary(limits, &mut imported.inert)
            })
            .collect();
        let routes = routes(&served, &limits, &mut imported.gaps);
        let Some(key) = key else { return imported };
        let mut order: Vec<_> = served.iter().zip(&limits).enumerate().collect();
        order.retain(|(_, (_, limits))| !limits.is_empty());
        order.sort_by(|(_, (one, _)), (_, (other, _))| one.origin.cmp(&other.origin));
        for (number, (ingress, limits)) in order {
            if imported.has_no_room() {
                continue;
            }
            let Some(covered) = routes.of(number, &mut imported.gaps) else { continue };
            let (rules, [model, unrounded]) = rules(ingress, limits, &key, statuses);
            let title = format!("Ingress {}", ingress.name);
            if rules.len() > 1 {
                imported.objects.push(ImportedObject {
                    title: title.clone(),
                    rules: rules.iter().map(|rule| rule.origin.clone()).collect(),
                    model: Box::new(model),
                    unrounded: Some(Box::new(unrounded)),
                });
            }
            let (origin, keys) = (ingress.origin.clone(), entry_keys(&covered, limits));
            imported.entries.push(ImportedEntry { origin, title, keys, rules });
        }
        imported
    }

    /// Returns true if this controller serves an Ingress. Otherwise its annotations have no effect.
    fn is_served(&self, ingress: &Ingress, prefix: &str, inert: &mut Notes) -> bool {
        let Some((class, origin)) = &ingress.class else { return true };
        let is_other = match self.classes.controller(class) {
            Some(controller) => controller != CONTROLLER,
            None => OTHER_CLASSES.contains(&class.as_str()),
        };
        let has_limits = ingress.annotations.iter().any(|annotation| {
            let name = annotation.key.strip_prefix(prefix).and_then(|it| it.strip_prefix('/'));
            name.is_some_and(|name| annotations::LIMITS.contains(&name))
        });
        if is_other && has_limits {
            let about = format!("all limits of the Ingress {}", ingress.name);
            let reason =
                format!("its class `{class}` is of another controller, which does not read them");
            inert.add(origin.clone(), about, reason);
        }
        !is_other
    }

    /// Remarks about settings of the controller that no rule expresses.
    fn setting_gaps(&self, gaps: &mut Notes) {
        let is_set = |text: &str| !matches!(text.trim(), "" | "0" | "false");
        let mut settings: Vec<_> = self.settings.iter().collect();
        settings.sort_by(|(_, (_, one)), (_, (_, other))| one.cmp(other));
        for (key, (text, origin)) in settings {
            let reason = match key.as_str() {
                "limit-rate" | "limit-rate-after" if is_set(text) => annotations::SHAPER,
                "use-forwarded-headers" | "use-proxy-protocol" | "enable-real-ip"
                    if is_set(text) =>
                {
                    "the controller takes the client's address from a proxy in front; Envoy needs the same, by xff_num_trusted_hops or \
                     the PROXY protocol, or all clients of that proxy are one caller"
                }
                "http-snippet" | "server-snippet" | "location-snippet"
                    if text.contains("limit_") =>
                {
                    annotations::SNIPPET
                }
                key if key.starts_with("global-rate-limit") && is_set(text) => annotations::GLOBAL,
                _ => continue,
            };
            gaps.add(origin.clone(), format!("{key}: {}", annotations::short(text)), reason);
        }
    }

    /// The key of the zones: the client's address, or the ConfigMap's variable. None if Diana
    /// cannot count by it.
    fn key(&self, gaps: &mut Notes) -> Option<KeySource> {
        let Some((text, origin)) = self.settings.get("limit-conn-zone-variable") else {
            return variables::source("binary_remote_addr");
        };
        let source = text.trim().strip_prefix('$').and_then(variables::source);
        if source.is_none() {
            let reason = "Diana does not count by this variable, which is the key of all limits of the controller; no limit is imported";
            gaps.add(origin.clone(), format!("limit-conn-zone-variable: {text}"), reason);
        }
        source
    }
}

/// The statuses of refusals.
#[derive(Debug, Clone, Copy)]
struct Statuses {
    requests: u16,
    connections: u16,
}

impl Ingress {
    fn read(root: &ManifestNode<'_>) -> Ingress {
        let text = |path: &str| root.descend(path).and_then(|node| node.tree().text());
        let namespace = text("metadata.namespace").unwrap_or("default");
        let name = text("metadata.name").or(text("metadata.generateName")).unwrap_or("unnamed");
        let all = root.descend("metadata.annotations").map(|it| it.pairs()).unwrap_or_default();
        let relevant = all.iter().filter(|(key, _)| annotations::is_relevant(key));
        Ingress {
            origin: root.origin(),
            name: format!("{namespace}/{name}"),
            created: text("metadata.creationTimestamp").map(str::to_owned),
            class: class_of(root).map(|(class, node)| (class.to_owned(), node.origin())),
            annotations: relevant
                .map(|(key, node)| Annotation {
                    key: (*key).into(),
                    text: node.tree().text().map(str::to_owned),
                    value: node.tree().text().map_or_else(|| node.tree().found(), Into::into),
                    origin: node.origin(),
                })
                .collect(),
            paths: paths(root),
        }
    }

    fn class_name(&self) -> Option<&str> {
        self.class.as_ref().map(|(class, _)| class.as_str())
    }

    /// Returns true if the Ingress has annotations of the community's controller.
    fn has_own(&self) -> bool {
        self.annotations.iter().any(|annotation| {
            annotation.key.rsplit('/').next().is_some_and(|it| annotations::LIMITS.contains(&it))
                || annotation.key.starts_with(DEFAULT_PREFIX)
        })
    }

    /// Returns true if the Ingress names this controller, or is of a class that may be its.
    fn is_of_controller(&self) -> bool {
        let is_f5 = self.annotations.iter().any(|it| it.key.starts_with("nginx.org/"));
        let is_class = self.class_name().is_some_and(|class| class.contains("nginx"));
        self.has_own() || is_class && !is_f5
    }
}

impl Ingress {
    /// The limits of an Ingress: a canary has none, since the controller ignores them.
    fn without_canary(&self, limits: IngressLimits, inert: &mut Notes) -> IngressLimits {
        let has_limits =
            |it: &&Annotation| annotations::LIMITS.iter().any(|name| it.key.ends_with(name));
        if !limits.is_canary || limits.is_empty() {
            return limits;
        }
        for annotation in self.annotations.iter().filter(has_limits) {
            let reason = "the Ingress is a canary, whose limits the controller ignores";
            inert.add(annotation.origin.clone(), annotation.shown(), reason);
        }
        IngressLimits { is_canary: true, ..IngressLimits::default() }
    }
}

impl Annotation {
    /// The annotation on one line.
    fn shown(&self) -> String {
        format!("{}: {}", self.key, annotations::short(&self.value))
    }
}

/// The hosts and paths of Ingresses, the oldest first.
fn routes(ingresses: &[Ingress], limits: &[IngressLimits], gaps: &mut Notes) -> Routes {
    let aliased = |ingress: &Ingress, limits: &IngressLimits| -> Vec<HostPath> {
        let aliases = limits.aliases.iter().flat_map(|alias| {
            let other = |path: &HostPath| HostPath { host: alias.clone(), ..path.clone() };
            ingress.paths.iter().map(other)
        });
        ingress.paths.iter().cloned().chain(aliases).collect()
    };
    // One regular expression makes all paths of its host regular expressions.
    let regexes = ingresses.iter().zip(limits).filter(|(_, limits)| limits.is_regex);
    let regexes: HashSet<String> = regexes
        .flat_map(|(ingress, limits)| aliased(ingress, limits))
        .map(|path| path.host)
        .collect();
    let mut routes = Routes::new("nginx");
    for (ingress, limit) in ingresses.iter().zip(limits) {
        let name = format!("the Ingress {}", ingress.name);
        let number = routes.add_owner(name, ingress.origin.clone());
        // A canary serves a part of the requests of another Ingress.
        let paths = if limit.is_canary { Vec::new() } else { aliased(ingress, limit) };
        for mut path in paths {
            if regexes.contains(&path.host) {
                path.kind = PathKind::Regex;
            }
            let Some(&[owner]) = routes.owners_of(&path) else {
                routes.add(path, &[number]);
                continue;
            };
            let has_limits = |number: usize| limits.get(number).is_some_and(|it| !it.is_empty());
            if let (true, Some(other)) =
                (owner != number && (has_limits(number) || has_limits(owner)), ingresses.get(owner))
            {
                let about = format!("{}{} of {}", path.host, path.path, ingress.name);
                gaps.add(path.origin, about, lost(ingress, other));
            }
        }
    }
    routes
}

/// Why an Ingress does not have one of its paths.
fn lost(ingress: &Ingress, other: &Ingress) -> String {
    match ingress.created.is_some() && other.created.is_some() {
        true => format!("{} has the same path and is older, so its limits apply", other.name),
        false => format!(
            "{} has the same path; the older one applies, but the manifests have no creationTimestamp, so the first one is taken: export \
             them by `kubectl get ingress -A -o yaml`",
            other.name
        ),
    }
}

/// The paths of an Ingress. One without rules has all requests that no host of others has.
fn paths(root: &ManifestNode<'_>) -> Vec<HostPath> {
    let rules = root.descend("spec.rules");
    let mut found = Vec::new();
    for rule in rules.iter().flat_map(ManifestNode::items) {
        let host = rule.text_of("host").unwrap_or_default().to_ascii_lowercase();
        for path in rule.descend("http.paths").iter().flat_map(ManifestNode::items) {
            let kind = match path.text_of("pathType") {
                Some("Exact") => PathKind::Exact,
                Some("Prefix") => PathKind::Prefix,
                _ => PathKind::Text,
            };
            let text = path.text_of("path").filter(|text| !text.is_empty()).unwrap_or("/").into();
            found.push(HostPath { host: host.clone(), path: text, kind, origin: path.origin() });
        }
    }
    let backend = root.descend("spec.defaultBackend").or_else(|| root.descend("spec.backend"));
    if let (true, Some(backend)) = (found.is_empty(), backend) {
        let (host, path) = (String::new(), "/".into());
        found.push(HostPath { host, path, kind: PathKind::Prefix, origin: backend.origin() });
    }
    found
}

/// The keys of the entry of an Ingress.
fn entry_keys(covered: &Covered, limits: &IngressLimits) -> Vec<(&'static str, Tree)> {
    let mut keys = covered.url_keys();
    keys.extend(covered.host_pair().map(|hosts| ("match", Tree::Map(vec![hosts]))));
    // nginx answers them before it counts.
    let options = || ("methods".to_owned(), Tree::List(vec!["OPTIONS".into()]));
    let cors = limits.has_cors.then(options);
    let unless = covered.other_host_pair().into_iter().chain(cors);
    let unless: Vec<Tree> = unless.map(|pair| Tree::Map(vec![pair])).collect();
    if !unless.is_empty() {
        keys.push(("unless", Tree::List(unless)));
    }
    keys.extend(covered.except(&limits.allowed));
    keys
}

/// The limits of an Ingress, as nginx has them.
#[derive(Clone, Copy)]
enum IngressLimit {
    /// Requests in a number of seconds.
    Requests(u64, u64),
    Connections(u64),
}

/// The rules of an Ingress, and models of all of them, with rounding and without it.
fn rules(
    ingress: &Ingress,
    limits: &IngressLimits,
    key: &KeySource,
    statuses: Statuses,
) -> (Vec<ImportedRule>, [PlaceModel; 2]) {
    let whole = |number: u64| Tree::Int(i128::from(number));
    let mut rules = Vec::new();
    let (mut all, mut unrounded) = (PlaceModel::default(), PlaceModel::default());
    let wanted = [
        ("rps", &limits.per_second, Some((1, "second"))),
        ("rpm", &limits.per_minute, Some((60, "minute"))),
        ("connections", &limits.connections, None),
    ];
    for (name, limit, unit) in wanted {
        let Some((number, origin)) = limit else { continue };
        let mut refused = "do not count, in both".to_owned();
        let (kind, keys, status) = match unit {
            Some((seconds, unit)) => {
                if seconds > 1 {
                    refused.push_str(&variables::rounding(*number));
                }
                let burst = number * limits.multiplier + 1;
                let keys = vec![
                    ("unit", Tree::from(unit)),
                    ("rpu", whole(*number)),
                    ("algo", "token bucket".into()),
                    ("burst", whole(burst)),
                ];
                (IngressLimit::Requests(*number, seconds), keys, statuses.requests)
            }
            None => {
                refused = "take no slot, in both".into();
                if !rules.is_empty() {
                    refused.push_str(
                        ", but nginx counts them under its limits of requests, and Diana does not",
                    );
                }
                let keys = vec![("in_flight", whole(*number))];
                (IngressLimit::Connections(*number), keys, statuses.connections)
            }
        };
        let model = |is_rounded| {
            let mut model = PlaceModel::default();
            add_limit(&mut model, kind, limits, key, is_rounded);
            Box::new(model)
        };
        add_limit(&mut all, kind, limits, key, true);
        add_limit(&mut unrounded, kind, limits, key, false);
        rules.push(ImportedRule {
            origin: origin.clone(),
            name: format!("{}-{name}", ingress.name),
            actors: vec![key.actor()],
            keys,
            status,
            differences: RuleDifferences {
                refused,
                belongs: format!(
                    "all hosts and paths of this Ingress together, in each pod of the controller; here of this entry, in each gateway; by {}",
                    key.counts
                ),
                keyless: key.without(!limits.allowed.is_empty()),
            },
            comparison: None,
            exempt: limits.allowed.clone(),
            is_partial: false,
            processes: 1,
            model: Some(model(true)),
            unrounded: Some(model(false)),
        });
    }
    (rules, [all, unrounded])
}

fn add_limit(
    model: &mut PlaceModel,
    limit: IngressLimit,
    limits: &IngressLimits,
    key: &KeySource,
    is_rounded: bool,
) {
    let key = KeyReader::new(vec![key.clone()], &limits.allowed);
    match limit {
        IngressLimit::Connections(number) => {
            model.add_connections(ConnectionLimit::new(key, number));
        }
        IngressLimit::Requests(requests, seconds) => {
            let rate = RequestRate { requests, seconds, is_rounded };
            let burst = requests * limits.multiplier;
            model.add_requests(RequestLimit::new(key, rate, burst, None));
        }
    }
}
