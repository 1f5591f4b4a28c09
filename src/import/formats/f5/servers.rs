//! Policies of limits, and the VirtualServers and VirtualServerRoutes that name them.

use hashbrown::HashMap;

use super::ingress::is_rate;
use super::{ControllerLimit, ServerWriter, created, directive, is_set, name_of, snippets};
use crate::envoy::fields::{items, text};
use crate::manifest::ManifestNode;
use crate::nginx::syntax::Directive;
use crate::outcome::Notes;
use crate::source::Origin;

/// A Policy with a limit.
pub(super) struct RatePolicy {
    origin: Origin,
    rate: String,
    key: String,
    burst: Option<String>,
    delay: Option<String>,
    has_no_delay: bool,
    is_dry_run: bool,
    status: String,
    is_scaled: bool,
    condition: Option<TierCondition>,
}

/// The requests of a Policy among those of a group.
#[derive(Clone)]
struct TierCondition {
    /// With its `$`.
    variable: String,
    value: String,
    is_default: bool,
}

impl RatePolicy {
    /// The limit of a Policy, if it has one.
    pub(super) fn read(root: &ManifestNode<'_>) -> Option<RatePolicy> {
        let limit = root.descend("spec.rateLimit")?;
        let value = |path: &str| text(&limit, path);
        let variables = items(&limit, "condition.variables");
        let (variable, matching) = match variables.first() {
            Some(first) => (text(first, "name"), text(first, "match")),
            None => (
                value("condition.jwt.claim").map(|claim| format!("$jwt_claim_{claim}")),
                value("condition.jwt.match"),
            ),
        };
        Some(RatePolicy {
            origin: limit.origin(),
            rate: value("rate").unwrap_or_default(),
            key: value("key").unwrap_or_default(),
            burst: value("burst"),
            delay: value("delay").filter(|delay| delay != "0"),
            has_no_delay: is_set(&limit, "noDelay"),
            is_dry_run: is_set(&limit, "dryRun"),
            status: value("rejectCode").unwrap_or_else(|| "503".into()),
            is_scaled: is_set(&limit, "scale"),
            condition: variable.zip(matching).map(|(variable, value)| TierCondition {
                variable,
                value,
                is_default: is_set(&limit, "condition.default"),
            }),
        })
    }
}

/// Names of Policies, with their lines.
type PolicyNames = Vec<(String, Origin)>;

/// A VirtualServer, or a VirtualServerRoute.
pub(super) struct VirtualServer {
    origin: Origin,
    pub(super) name: String,
    pub(super) created: Option<String>,
    host: String,
    policies: PolicyNames,
    routes: Vec<ServerRoute>,
}

/// A path of a VirtualServer.
struct ServerRoute {
    origin: Origin,
    path: String,
    policies: PolicyNames,
    /// The VirtualServerRoute that has the path.
    delegate: Option<String>,
}

impl VirtualServer {
    /// Reads an object with its routes in this field.
    pub(super) fn read(root: &ManifestNode<'_>, routes: &str, gaps: &mut Notes) -> VirtualServer {
        let name = name_of(root);
        let namespace = name.split('/').next().unwrap_or_default().to_owned();
        let in_namespace = |name: String| match name.contains('/') {
            true => name,
            false => format!("{namespace}/{name}"),
        };
        let policies = |node: &ManifestNode<'_>, path: &str| -> PolicyNames {
            let policy = |policy: ManifestNode<'_>| {
                let namespace = text(&policy, "namespace").filter(|it| !it.is_empty());
                let name = text(&policy, "name")?;
                let name = match namespace {
                    Some(namespace) => format!("{namespace}/{name}"),
                    None => in_namespace(name),
                };
                Some((name, policy.origin()))
            };
            items(node, path).into_iter().filter_map(policy).collect()
        };
        let route = |route: ManifestNode<'_>| ServerRoute {
            origin: route.origin(),
            path: text(&route, "path").unwrap_or_else(|| "/".into()),
            policies: policies(&route, "policies"),
            delegate: text(&route, "route").map(in_namespace),
        };
        if let Some(spec) = root.get("spec") {
            snippets(&spec, &["http-snippets", "server-snippets"], gaps);
            for route in items(&spec, routes) {
                snippets(&route, &["location-snippets"], gaps);
            }
        }
        VirtualServer {
            origin: root.origin(),
            created: created(root),
            host: text(root, "spec.host").unwrap_or_default().to_ascii_lowercase(),
            policies: policies(root, "spec.policies"),
            routes: items(root, &format!("spec.{routes}")).into_iter().map(route).collect(),
            name,
        }
    }
}

/// The Policies, and the server that names them.
struct PolicyScope<'r> {
    policies: &'r HashMap<String, Option<RatePolicy>>,
    server: &'r str,
}

impl PolicyScope<'_> {
    /// Writes the maps and zones of some policies. Returns the directives of their place.
    fn place(&self, names: &PolicyNames, writer: &mut ServerWriter<'_>) -> Vec<Directive> {
        let mut known: Vec<(&String, &RatePolicy)> = Vec::new();
        for (name, origin) in names {
            match self.policies.get(name) {
                Some(Some(policy)) if is_rate(&policy.rate) && !policy.key.is_empty() => {
                    known.push((name, policy));
                }
                Some(None) => {}
                found => {
                    let why =
                        if found.is_some() { "is not valid" } else { "is not in these files" };
                    let reason = format!(
                        "{why}; without a valid one the controller answers 500 to all requests of the place"
                    );
                    writer.notes.gaps.add(origin.clone(), format!("the Policy {name}"), reason);
                }
            }
        }
        let mut limits = Vec::new();
        for (name, policy) in &known {
            let zone = format!("{name}/{}", self.server);
            let key = match &policy.condition {
                None => policy.key.clone(),
                Some(condition) => {
                    let variable = format!("${}", plain(&format!("{zone}-{}", names_of(&known))));
                    let group = known
                        .iter()
                        .filter_map(|(name, other)| Some((*name, other.condition.as_ref()?)));
                    let map = tier_map(&variable, name, policy, condition, group);
                    if !writer.http.iter().any(|it| it.words == map.words) {
                        writer.http.push(map);
                    }
                    variable
                }
            };
            let limit = ControllerLimit {
                zone,
                key,
                rate: policy.rate.clone(),
                burst: policy.burst.clone(),
                delay: policy.delay.clone(),
                has_no_delay: policy.has_no_delay,
                is_dry_run: policy.is_dry_run,
                status: Some(policy.status.clone()),
                is_scaled: policy.is_scaled,
                origin: policy.origin.clone(),
            };
            writer.zone(&limit);
            limits.push(limit);
        }
        ControllerLimit::place(&limits)
    }
}

fn names_of(known: &[(&String, &RatePolicy)]) -> String {
    known.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("-")
}

/// A text as the name of a variable.
fn plain(text: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    text.chars().map(plain).collect()
}

/// The map that makes the key of a policy of a group: empty for requests of another tier.
fn tier_map<'p>(
    variable: &str,
    name: &str,
    policy: &RatePolicy,
    condition: &TierCondition,
    group: impl Iterator<Item = (&'p String, &'p TierCondition)>,
) -> Directive {
    // The controller puts a text before the key, so that no key is empty.
    let key = format!("Val{}", policy.key);
    let origin = &policy.origin;
    let mut block = Vec::new();
    for (other, tier) in group.filter(|(_, tier)| tier.variable == condition.variable) {
        let result = if other == name { key.as_str() } else { "" };
        block.push(directive(origin, &[&tier.value, result], Vec::new()));
    }
    let default = if condition.is_default { key.as_str() } else { "" };
    block.push(directive(origin, &["default", default], Vec::new()));
    directive(origin, &["map", &condition.variable, variable], block)
}

/// Writes the servers.
pub(super) fn write(
    servers: &[VirtualServer],
    routes: &HashMap<String, VirtualServer>,
    policies: &HashMap<String, Option<RatePolicy>>,
    writer: &mut ServerWriter<'_>,
) {
    for server in servers {
        let name = format!("the VirtualServer {}", server.name);
        let has_time = server.created.is_some();
        if !writer.hosts.take(&server.host, &name, has_time, &server.origin, writer.notes) {
            continue;
        }
        let scope = PolicyScope { policies, server: &server.name };
        let mut block = scope.place(&server.policies, writer);
        for route in &server.routes {
            let Some(delegate) = &route.delegate else {
                let limits = scope.place(&route.policies, writer);
                block.push(location(&route.origin, &route.path, limits));
                continue;
            };
            let Some(other) = routes.get(delegate).filter(|it| it.host == server.host) else {
                let reason = "no VirtualServerRoute of these files has this name and host, so its limits are missing";
                writer.notes.gaps.add(
                    route.origin.clone(),
                    format!("the route {delegate}"),
                    reason,
                );
                continue;
            };
            for inner in &other.routes {
                // A route without policies has those of the VirtualServer's route.
                let names =
                    if inner.policies.is_empty() { &route.policies } else { &inner.policies };
                let limits = scope.place(names, writer);
                block.push(location(&inner.origin, &inner.path, limits));
            }
        }
        writer.server(&server.origin, &server.host, block);
    }
    for (name, policy) in policies {
        let Some(policy) = policy else { continue };
        let prefix = format!("{name}/");
        if !writer.zones.iter().any(|zone| zone.starts_with(&prefix)) {
            let reason = "no VirtualServer of these files names it";
            let about = format!("the Policy {name}");
            writer.notes.inert.add(policy.origin.clone(), about, reason);
        }
    }
}

/// A location with limits. Its path may begin with nginx's modifier.
fn location(origin: &Origin, path: &str, limits: Vec<Directive>) -> Directive {
    let modifier = ["^~", "~*", "~", "="].into_iter().find(|it| path.starts_with(it));
    match modifier.and_then(|modifier| Some((modifier, path.strip_prefix(modifier)?))) {
        Some((modifier, path)) => {
            directive(origin, &["location", modifier, path.trim_start()], limits)
        }
        None => directive(origin, &["location", path], limits),
    }
}
