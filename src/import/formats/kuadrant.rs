//! RateLimitPolicy of Kuadrant, with the HTTPRoutes and Gateways that it is for.
//!
//! Limitador counts for all gateways, in windows that begin with a caller's first request. Each
//! HTTPRoute has separate counts.

mod cel;
mod model;

use super::{FormatReader, ImportFormat};
use crate::condition::RequestCondition;
use crate::duration;
use crate::envoy::fields::{items, text};
use crate::gateway_routes::{GatewayRoutes, route_key, text_or};
use crate::key::KeySource;
use crate::manifest::{ManifestNode, ManifestObject};
use crate::outcome::{Imported, ImportedEntry, ImportedObject, ImportedRule, RuleDifferences};
use crate::routes::Covered;
use crate::source::Origin;
use crate::windows::WindowSize;
use model::{FirstRequestWindows, LimitadorModel};

/// `kuadrant` in the registry.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "kuadrant", reader: || Box::<KuadrantReader>::default() };

#[derive(Default)]
struct KuadrantReader {
    policies: Vec<KuadrantPolicy>,
    routes: GatewayRoutes,
    notes: Imported,
}

/// Limits of a policy: its own, its `defaults` or its `overrides`.
struct KuadrantPolicy {
    origin: Origin,
    /// `<namespace>/<name>`.
    name: String,
    /// The kind, the namespace with the name, and the section of the target.
    target: (String, String, Option<String>),
    is_override: bool,
    /// Whether limits of other policies apply as well.
    is_merged: bool,
    /// The names of all limits, also of those that no rule expresses.
    names: Vec<String>,
    limits: Vec<KuadrantLimit>,
}

struct KuadrantLimit {
    origin: Origin,
    name: String,
    condition: RequestCondition,
    sources: Vec<KeySource>,
    /// With their lines.
    rates: Vec<(WindowSize, Origin)>,
}

impl FormatReader for KuadrantReader {
    fn object(&mut self, object: &ManifestObject) -> bool {
        let root = object.root();
        let is_own = root.text_of("kind") == Some("RateLimitPolicy")
            && root.text_of("apiVersion").is_some_and(|version| version.contains("kuadrant.io"));
        match is_own {
            true => self.read_policy(&root),
            false => self.routes.read(&root),
        }
        is_own
    }

    fn finish(self: Box<Self>) -> Imported {
        let KuadrantReader { policies, routes, notes: mut imported } = *self;
        for policy in &policies {
            let (kind, name, section) = &policy.target;
            let places: Vec<String> = match kind.as_str() {
                "Gateway" => routes.of_gateway(name).map(|(route, _)| route.clone()).collect(),
                _ => vec![route_key(kind, name)],
            };
            if places.is_empty() {
                let reason = "no HTTPRoute of these files belongs to it; export them by `kubectl get httproute,ratelimitpolicy -A -o yaml`";
                imported.gaps.add(policy.origin.clone(), format!("{kind} {name}"), reason);
            }
            for place in places {
                for limit in &policy.limits {
                    match replacement(policy, limit, &place, &policies, &routes) {
                        // A default that a route does not need.
                        Some(_) if kind == "Gateway" => {}
                        Some(other) => {
                            let reason = format!("the policy {other} replaces it at {place}");
                            imported.inert.add(limit.origin.clone(), limit.name.as_str(), reason);
                        }
                        None => {
                            let rule = section.as_ref().and_then(|section| {
                                let route = routes.find(kind, name)?;
                                route
                                    .rules
                                    .iter()
                                    .position(|(own, _)| own.as_ref() == Some(section))
                            });
                            if section.is_some() && kind != "Gateway" && rule.is_none() {
                                let reason = "no rule of the route has this name in these files, so the entry is for the whole route";
                                imported.gaps.add(policy.origin.clone(), "sectionName", reason);
                            }
                            add(policy, limit, &place, rule, &mut imported);
                        }
                    }
                }
            }
        }
        imported
    }
}

/// The policy whose limits apply at a route in place of a limit.
fn replacement<'p>(
    policy: &KuadrantPolicy,
    limit: &KuadrantLimit,
    route: &str,
    policies: &'p [KuadrantPolicy],
    routes: &GatewayRoutes,
) -> Option<&'p str> {
    let is_gateway = policy.target.0 == "Gateway";
    let replaces = |other: &&KuadrantPolicy| {
        let (kind, name, section) = &other.target;
        let is_for = match kind.as_str() {
            "Gateway" => routes.of_gateway(name).any(|(own, _)| own == route),
            _ => section.is_none() && route_key(kind, name) == route,
        };
        // Overrides of Gateways are stronger than policies of routes, and these than defaults.
        let is_stronger = match (is_gateway, kind == "Gateway") {
            (true, false) => !policy.is_override,
            (false, true) => other.is_override,
            _ => false,
        };
        let is_merged = if other.is_override { other.is_merged } else { policy.is_merged };
        let has_name = other.names.contains(&limit.name);
        is_for && is_stronger && (!is_merged || has_name)
    };
    policies.iter().find(replaces).map(|other| other.name.as_str())
}

impl KuadrantReader {
    fn read_policy(&mut self, root: &ManifestNode<'_>) {
        let namespace = text_or(root, "metadata.namespace", "default");
        let name = format!("{namespace}/{}", text_or(root, "metadata.name", "unnamed"));
        let target = (
            text_or(root, "spec.targetRef.kind", "HTTPRoute"),
            format!("{namespace}/{}", text_or(root, "spec.targetRef.name", "unnamed")),
            text(root, "spec.targetRef.sectionName"),
        );
        for path in ["spec", "spec.defaults", "spec.overrides"] {
            let Some(part) = root.descend(path) else { continue };
            let when = condition(&part);
            let (mut names, mut limits) = (Vec::new(), Vec::new());
            for (limit, node) in part.get("limits").map(|it| it.pairs()).unwrap_or_default() {
                names.push(limit.to_owned());
                let about = format!("the limit {limit} of {name}");
                let read = when.clone().and_then(|when| read_limit(limit, &node, when));
                match read {
                    Ok(read) => limits.push(read),
                    Err(why) => self.notes.gaps.add(node.origin(), about, why),
                }
            }
            if !names.is_empty() {
                self.policies.push(KuadrantPolicy {
                    origin: root.origin(),
                    name: name.clone(),
                    target: target.clone(),
                    is_override: path == "spec.overrides",
                    is_merged: part.text_of("strategy") == Some("merge"),
                    names,
                    limits,
                });
            }
        }
        for old in ["spec.rateLimits", "spec.rules"] {
            if let Some(old) = root.descend(old) {
                let reason =
                    "it is of an old version; export the policies from a cluster with Kuadrant 1";
                self.notes.gaps.add(old.origin(), name.as_str(), reason);
            }
        }
    }
}

/// The condition in `when`.
fn condition(node: &ManifestNode<'_>) -> Result<RequestCondition, String> {
    let mut all = RequestCondition::default();
    for test in items(node, "when") {
        let predicate = text(&test, "predicate")
            .ok_or("found no `predicate` in `when`, as in an old version")?;
        all.and(&cel::predicate(&predicate)?)?;
    }
    Ok(all)
}

/// Reads a limit of a policy with a condition.
///
/// # Errors
/// Why no rule expresses it.
fn read_limit(
    name: &str,
    node: &ManifestNode<'_>,
    when: RequestCondition,
) -> Result<KuadrantLimit, String> {
    let mut limit = KuadrantLimit {
        origin: node.origin(),
        name: name.into(),
        condition: when,
        sources: Vec::new(),
        rates: Vec::new(),
    };
    limit.condition.and(&condition(node)?)?;
    for counter in items(node, "counters") {
        let expression = text(&counter, "expression")
            .ok_or("found a counter without `expression`, as in an old version")?;
        limit.sources.push(cel::counter(&expression)?);
    }
    for rate in items(node, "rates") {
        let window =
            text(&rate, "window").ok_or("found a rate without `window`, as in an old version")?;
        let seconds = duration::milliseconds(&window).map(|ms| ms / 1000).filter(|it| *it > 0);
        let seconds = seconds.ok_or_else(|| {
            format!("found the window `{window}`, of which Kuadrant takes whole seconds")
        })?;
        // A negative one is zero.
        let most = text(&rate, "limit").and_then(|it| it.parse::<i64>().ok()).unwrap_or(0);
        let most = u64::try_from(most).unwrap_or(0);
        limit.rates.push((WindowSize { most, seconds }, rate.origin()));
    }
    if limit.rates.is_empty() { Err("it has no `rates`".into()) } else { Ok(limit) }
}

/// The beginnings of the names that Envoy Gateway and Istio give to the routes of an HTTPRoute.
fn route_names(route: &str, rule: Option<usize>) -> Vec<String> {
    let istio = route.split('/').skip(1).collect::<Vec<_>>().join(".");
    match rule {
        None => vec![format!("{route}/"), format!("{istio}.")],
        Some(rule) => vec![format!("{route}/rule/{rule}/"), format!("{istio}.{rule}")],
    }
}

/// Adds the entry of a limit at a route.
fn add(
    policy: &KuadrantPolicy,
    limit: &KuadrantLimit,
    route: &str,
    rule: Option<usize>,
    imported: &mut Imported,
) {
    let KuadrantLimit { origin, name, condition, sources, rates } = limit;
    let title = format!("the limit {name} of {} at {route}", policy.name);
    let covered = Covered { paths: vec!["/".into()], ..Covered::default() };
    let place = RequestCondition::of_route_prefixes(&route_names(route, rule));
    let mut whole = condition.clone();
    let keys = whole.and(&place).and_then(|()| whole.entry_keys("Envoy", &covered));
    let (keys, remarks) = match keys {
        Ok(keys) => keys,
        Err(why) => return imported.gaps.add(origin.clone(), title, why),
    };
    for remark in remarks {
        imported.gaps.add(origin.clone(), title.as_str(), remark);
    }
    let windows = |size| FirstRequestWindows::new(size, sources.clone());
    let rules = rates.iter().map(|(size, origin)| ImportedRule {
        origin: origin.clone(),
        name: format!("{}-{name}", policy.name),
        actors: sources.iter().map(KeySource::actor).collect(),
        keys: size.rule_keys(),
        status: 429,
        differences: RuleDifferences {
            refused: "do not count, in both".into(),
            belongs: format!(
                "this HTTPRoute, in all gateways, as here; {}; a window begins with a caller's first request, here by the clock",
                KeySource::counted_by(sources)
            ),
            keyless: match sources.as_slice() {
                [] => "all requests share one count".into(),
                sources if sources.iter().all(KeySource::is_always) => "every request has one".into(),
                _ => "not limited, in both".into(),
            },
        },
        comparison: None,
        exempt: Vec::new(),
        is_partial: false,
        processes: 1,
        model: Some(Box::new(LimitadorModel { windows: vec![windows(*size)] })),
        unrounded: None,
    });
    let rules: Vec<ImportedRule> = rules.collect();
    if rates.len() > 1 {
        let windows = rates.iter().map(|(size, _)| windows(*size)).collect();
        imported.objects.push(ImportedObject {
            title: title.clone(),
            rules: rates.iter().map(|(_, origin)| origin.clone()).collect(),
            model: Box::new(LimitadorModel { windows }),
            unrounded: None,
        });
    }
    imported.entries.push(ImportedEntry { origin: origin.clone(), title, keys, rules });
}
