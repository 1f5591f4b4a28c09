//! The middlewares RateLimit and InFlightReq of Traefik, as custom resources or in files, for the
//! routers that use them.
//!
//! Each router has an instance of its middlewares, so it counts apart.

mod model;
mod rule;

use std::collections::BTreeMap;

use diana_policy::tree::Tree;

use super::{FormatReader, ImportFormat};
use crate::buckets::BucketSize;
use crate::condition::RequestCondition;
use crate::duration;
use crate::envoy::fields::{flag, items, number, text};
use crate::key::KeySource;
use crate::manifest::{ManifestNode, ManifestObject};
use crate::open_requests::OpenRequests;
use crate::outcome::{Imported, ImportedEntry, ImportedObject, ImportedRule, RuleDifferences};
use crate::routes::{HostPath, PathKind, Routes};
use crate::source::Origin;
use model::{MiddlewareModel, RouterModel, WaitingBuckets};
use rule::RouterMatch;

/// `traefik` in the registry.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "traefik", reader: || Box::<TraefikReader>::default() };

/// Maximum depth of chains of middlewares.
const MAX_DEPTH: usize = 8;

/// The annotation of an Ingress with middlewares.
const ANNOTATION: &str = "traefik.ingress.kubernetes.io/router.middlewares";

#[derive(Default)]
struct TraefikReader {
    /// By names with their provider, such as `shop-limit@kubernetescrd`.
    middlewares: BTreeMap<String, Middleware>,
    routers: Vec<TraefikRouter>,
    notes: Imported,
}

struct Middleware {
    origin: Origin,
    kind: MiddlewareKind,
}

enum MiddlewareKind {
    Limit(TraefikLimit),
    /// The names of others.
    Chain(Vec<String>),
}

#[derive(Clone)]
struct TraefikLimit {
    source: KeySource,
    count: TraefikCount,
}

#[derive(Clone, Copy)]
enum TraefikCount {
    /// A bucket, and whether a Redis has it.
    Rate(BucketSize, bool),
    InFlight(u64),
}

/// A router with the names of its middlewares.
struct TraefikRouter {
    origin: Origin,
    name: String,
    /// Alternatives, or why they cannot be read.
    rule: Result<Vec<RouterMatch>, String>,
    /// Names, and their lines.
    middlewares: Vec<(String, Origin)>,
}

impl FormatReader for TraefikReader {
    fn object(&mut self, object: &ManifestObject) -> bool {
        let root = object.root();
        let metadata = |key: &str| text(&root, &format!("metadata.{key}"));
        let namespace = metadata("namespace").unwrap_or_else(|| "default".into());
        let name = metadata("name").unwrap_or_default();
        match root.text_of("kind") {
            Some("Middleware") => {
                let Some(spec) = root.get("spec") else { return false };
                self.read_middleware(&spec, resource(&namespace, &name), &namespace)
            }
            Some("IngressRoute") => {
                for (number, route) in items(&root, "spec.routes").iter().enumerate() {
                    let name = format!("{namespace}/{name} {number}");
                    let uses = items(route, "middlewares").into_iter().map(|it| {
                        let space = text(&it, "namespace").unwrap_or_else(|| namespace.clone());
                        let name = text(&it, "name").unwrap_or_default();
                        let name = if name.contains('@') { name } else { resource(&space, &name) };
                        (name, it.origin())
                    });
                    let middlewares = uses.collect();
                    let rule = rule::read(&text(route, "match").unwrap_or_default());
                    let origin = route.origin();
                    self.routers.push(TraefikRouter { origin, name, rule, middlewares });
                }
                false
            }
            Some("Ingress") => {
                self.read_ingress(&root, &format!("{namespace}/{name}"));
                false
            }
            None => root.get("http").is_some_and(|http| self.read_file(&http)),
            _ => false,
        }
    }

    fn finish(self: Box<Self>) -> Imported {
        let TraefikReader { middlewares, routers, notes: mut imported } = *self;
        let mut used = Vec::new();
        let mut routes = Routes::new("Traefik");
        // The owner of each router, its condition, and its limits.
        let mut owners: Vec<(usize, &TraefikRouter, RequestCondition, Vec<UsedLimit>)> = Vec::new();
        for router in &routers {
            let mut limits = Vec::new();
            for (name, origin) in &router.middlewares {
                limits_of(&middlewares, name, origin, 0, &mut used, &mut limits);
            }
            let title = format!("the router {}", router.name);
            let alternatives = match &router.rule {
                Ok(alternatives) => alternatives,
                Err(why) => {
                    if !limits.is_empty() {
                        imported.gaps.add(router.origin.clone(), title, why.as_str());
                    }
                    continue;
                }
            };
            let mut groups: Vec<(RequestCondition, Vec<&RouterMatch>)> = Vec::new();
            for one in alternatives {
                match groups.iter_mut().find(|(condition, _)| *condition == one.condition) {
                    Some((_, same)) => same.push(one),
                    None => groups.push((one.condition.clone(), vec![one])),
                }
            }
            if groups.len() > 1 && !limits.is_empty() {
                let reason =
                    "its alternatives have different conditions, so the rules count them apart";
                imported.gaps.add(router.origin.clone(), title.as_str(), reason);
            }
            for (condition, alternatives) in groups {
                // Requests that do not meet it are of another router.
                if limits.is_empty() && !condition.is_always() {
                    continue;
                }
                let owner = (!limits.is_empty())
                    .then(|| routes.add_owner(title.clone(), router.origin.clone()));
                for one in alternatives {
                    let (path, kind) =
                        one.path.clone().unwrap_or_else(|| ("/".into(), PathKind::Prefix));
                    let host = one.host.clone().unwrap_or_default();
                    let place = HostPath { host, path, kind, origin: router.origin.clone() };
                    let known = routes.owners_of(&place).map(<[usize]>::to_vec).unwrap_or_default();
                    let all: Vec<usize> = known.into_iter().chain(owner).collect();
                    routes.add(place, &all);
                }
                if let Some(owner) = owner {
                    owners.push((owner, router, condition, limits.clone()));
                }
            }
        }
        for (owner, router, condition, limits) in owners {
            let Some(covered) = routes.of(owner, &mut imported.gaps) else { continue };
            let title = format!("the router {}", router.name);
            match condition.entry_keys("Traefik", &covered) {
                Ok((keys, remarks)) => {
                    for remark in remarks {
                        imported.gaps.add(router.origin.clone(), title.as_str(), remark);
                    }
                    add(router, title, keys, &limits, &mut imported);
                }
                Err(why) => imported.gaps.add(router.origin.clone(), title, why),
            }
        }
        for (name, middleware) in &middlewares {
            if matches!(middleware.kind, MiddlewareKind::Limit(_)) && !used.contains(name) {
                let reason = "no router of these files uses it; import them with it, such as by `kubectl get ingressroute,middleware,ingress -A -o yaml`";
                imported.gaps.add(
                    middleware.origin.clone(),
                    format!("the middleware {name}"),
                    reason,
                );
            }
        }
        imported
    }
}

/// The name of a resource.
fn resource(namespace: &str, name: &str) -> String {
    format!("{namespace}-{name}@kubernetescrd")
}

/// A limit that a router uses.
#[derive(Clone)]
struct UsedLimit {
    name: String,
    /// Where the router uses it.
    origin: Origin,
    limit: TraefikLimit,
}

/// Adds the limits of a middleware, or of those in its chain.
fn limits_of(
    all: &BTreeMap<String, Middleware>,
    name: &str,
    origin: &Origin,
    depth: usize,
    used: &mut Vec<String>,
    found: &mut Vec<UsedLimit>,
) {
    let Some(middleware) = all.get(name).filter(|_| depth < MAX_DEPTH && found.len() < 32) else {
        return;
    };
    match &middleware.kind {
        MiddlewareKind::Limit(limit) => {
            if !used.iter().any(|known| known == name) {
                used.push(name.into());
            }
            found.push(UsedLimit {
                name: name.into(),
                origin: origin.clone(),
                limit: limit.clone(),
            });
        }
        MiddlewareKind::Chain(names) => {
            names.iter().for_each(|name| limits_of(all, name, origin, depth + 1, used, found));
        }
    }
}

impl TraefikReader {
    /// Reads a middleware. Returns true if it limits.
    fn read_middleware(&mut self, spec: &ManifestNode<'_>, name: String, namespace: &str) -> bool {
        let kind = if let Some(rate) = spec.get("rateLimit") {
            self.read_rate(&rate, &name).map(MiddlewareKind::Limit)
        } else if let Some(in_flight) = spec.get("inFlightReq") {
            let amount = number(&in_flight, "amount").filter(|amount| *amount > 0);
            let source =
                self.source(&in_flight, KeySource::part(diana_policy::port::Pseudo::Authority));
            if amount.is_none() {
                let reason =
                    "found no positive `amount`, so Traefik does not limit by it, or refuses it";
                self.notes.inert.add(in_flight.origin(), name.as_str(), reason);
            }
            amount.map(|amount| {
                MiddlewareKind::Limit(TraefikLimit {
                    source,
                    count: TraefikCount::InFlight(amount),
                })
            })
        } else if spec.descend("chain.middlewares").is_some() {
            let of = |it: &ManifestNode<'_>| {
                let plain = it.tree().text().map(str::to_owned);
                let space = text(it, "namespace").unwrap_or_else(|| namespace.into());
                let name = plain.or_else(|| text(it, "name")).unwrap_or_default();
                match name.contains('@') {
                    true => name,
                    false if namespace.is_empty() => format!("{name}@file"),
                    false => resource(&space, &name),
                }
            };
            Some(MiddlewareKind::Chain(items(spec, "chain.middlewares").iter().map(of).collect()))
        } else {
            return false;
        };
        let is_chain = matches!(kind, Some(MiddlewareKind::Chain(_)));
        if let Some(kind) = kind {
            self.middlewares.insert(name, Middleware { origin: spec.origin(), kind });
        }
        !is_chain
    }

    fn read_rate(&mut self, node: &ManifestNode<'_>, name: &str) -> Option<TraefikLimit> {
        let average = number(node, "average").unwrap_or(0);
        let about = format!("the middleware {name}");
        if average == 0 {
            let reason = "found no `average`, or 0, so Traefik does not limit by it";
            self.notes.inert.add(node.origin(), about, reason);
            return None;
        }
        let period = text(node, "period").unwrap_or_else(|| "1s".into());
        let Some(interval) = duration::milliseconds(&period) else {
            let reason = format!("found the period `{period}`, which is no duration");
            self.notes.gaps.add(node.origin(), about, reason);
            return None;
        };
        let most = number(node, "burst").unwrap_or(1).max(1);
        let size = BucketSize {
            most,
            fill: average,
            interval: if interval == 0 { 1000 } else { interval },
        };
        let source = self.source(node, KeySource::address());
        let count = TraefikCount::Rate(size, node.get("redis").is_some());
        Some(TraefikLimit { source, count })
    }

    /// The value by which a middleware counts.
    fn source(&mut self, node: &ManifestNode<'_>, default: KeySource) -> KeySource {
        let Some(criterion) = node.get("sourceCriterion") else { return default };
        if let Some(strategy) = criterion.get("ipStrategy") {
            if number(&strategy, "depth").is_some_and(|depth| depth > 0)
                || !items(&strategy, "excludedIPs").is_empty()
            {
                let reason = "Envoy determines the client address; set `xff_num_trusted_hops` to the number of proxies, see the page on client addresses";
                self.notes.gaps.add(strategy.origin(), "ipStrategy", reason);
            }
            let bits = number(&strategy, "ipv6Subnet").and_then(|it| u8::try_from(it).ok());
            return KeySource::network(32, bits.unwrap_or(128).clamp(1, 128));
        }
        if let Some(header) = text(&criterion, "requestHeaderName").filter(|it| !it.is_empty()) {
            return KeySource::header(&header);
        }
        match flag(&criterion, "requestHost") {
            Some(true) => KeySource::part(diana_policy::port::Pseudo::Authority),
            _ => default,
        }
    }

    /// Reads the routers and middlewares of a file. Returns true if one limits.
    fn read_file(&mut self, http: &ManifestNode<'_>) -> bool {
        let pairs = |key: &str| http.get(key).map(|it| it.pairs()).unwrap_or_default();
        let in_file = |name: &str| {
            if name.contains('@') { name.to_owned() } else { format!("{name}@file") }
        };
        let mut limits = false;
        for (name, middleware) in pairs("middlewares") {
            limits |= self.read_middleware(&middleware, in_file(name), "");
        }
        for (name, router) in pairs("routers") {
            let uses = items(&router, "middlewares").into_iter();
            let middlewares =
                uses.filter_map(|it| Some((in_file(it.tree().text()?), it.origin()))).collect();
            let rule = rule::read(&text(&router, "rule").unwrap_or_default());
            let (origin, name) = (router.origin(), name.to_owned());
            self.routers.push(TraefikRouter { origin, name, rule, middlewares });
        }
        limits
    }

    /// Reads an Ingress as a router.
    fn read_ingress(&mut self, root: &ManifestNode<'_>, name: &str) {
        let annotation = root.descend("metadata.annotations").and_then(|it| it.get(ANNOTATION));
        let Some(annotation) = annotation else { return };
        let names = annotation.tree().text().unwrap_or_default().split(',');
        let middlewares = names.map(|name| (name.trim().to_owned(), annotation.origin())).collect();
        let mut alternatives = Vec::new();
        for rule in items(root, "spec.rules") {
            let host = text(&rule, "host").filter(|host| !host.is_empty());
            for path in items(&rule, "http.paths") {
                let kind = match text(&path, "pathType").as_deref() {
                    Some("Exact") => PathKind::Exact,
                    Some("Prefix") => PathKind::Prefix,
                    _ => PathKind::Text,
                };
                let path = Some((text(&path, "path").unwrap_or_else(|| "/".into()), kind));
                let host = host.clone();
                alternatives.push(RouterMatch { host, path, ..RouterMatch::default() });
            }
        }
        let (origin, name, rule) =
            (root.origin(), format!("of the Ingress {name}"), Ok(alternatives));
        self.routers.push(TraefikRouter { origin, name, rule, middlewares });
    }
}

impl TraefikLimit {
    /// The keys of its rule.
    ///
    /// # Errors
    /// Why no rule expresses it.
    fn rule_keys(&self) -> Result<Vec<(&'static str, Tree)>, String> {
        let (size, is_shared) = match self.count {
            TraefikCount::InFlight(most) => {
                return Ok(vec![("in_flight", Tree::Int(i128::from(most)))]);
            }
            TraefikCount::Rate(size, is_shared) => (size, is_shared),
        };
        let mut keys = size.rule_keys(1)?;
        // A wait of less than a millisecond is none.
        let longest = longest(size) / 1_000_000;
        if longest > 0 {
            if keys.iter().all(|(key, _)| *key != "burst") {
                keys.push(("burst", Tree::Int(i128::from(size.most))));
            }
            keys.push(("max_delay", Tree::Text(format!("{longest}ms"))));
            keys.push(("max_queue", Tree::Int(1)));
        }
        if is_shared {
            keys.push(("scope", "global".into()));
        }
        Ok(keys)
    }

    fn model(&self) -> MiddlewareModel {
        let source = self.source.clone();
        match self.count {
            TraefikCount::InFlight(most) => {
                MiddlewareModel::InFlight(source, OpenRequests::new(most))
            }
            TraefikCount::Rate(size, is_shared) => {
                let forgets = (!is_shared).then(|| 1 + seconds_of_a_token(size).max(1));
                MiddlewareModel::Rate(WaitingBuckets::new(size, source, longest(size), forgets))
            }
        }
    }
}

/// The whole seconds in which a token returns.
fn seconds_of_a_token(size: BucketSize) -> u64 {
    size.interval / (1000 * size.fill.max(1))
}

/// The longest wait of a request in nanoseconds: half of the time in which a token returns, at most half a second.
fn longest(size: BucketSize) -> u64 {
    match size.fill.saturating_mul(1000) / size.interval.max(1) {
        0 => 500_000_000,
        a_second => 1_000_000_000 / (a_second * 2),
    }
}

/// Adds the entry of a router.
fn add(
    router: &TraefikRouter,
    title: String,
    keys: Vec<(&'static str, Tree)>,
    limits: &[UsedLimit],
    imported: &mut Imported,
) {
    let mut rules = Vec::new();
    for UsedLimit { name, origin, limit } in limits {
        let about = format!("the middleware {name}");
        let keys = match limit.rule_keys() {
            Ok(keys) => keys,
            Err(why) => {
                imported.gaps.add(origin.clone(), about, why);
                continue;
            }
        };
        let is_in_flight = matches!(limit.count, TraefikCount::InFlight(_));
        rules.push(ImportedRule {
            origin: origin.clone(),
            name: format!("{}-{}", router.name, name.split('@').next().unwrap_or_default()),
            actors: vec![limit.source.actor()],
            keys,
            status: 429,
            differences: RuleDifferences {
                refused: if is_in_flight {
                    "take no slot, in both".into()
                } else {
                    "do not count in this bucket, in both; Traefik has charged the middlewares before it, Diana none".into()
                },
                belongs: format!(
                    "this router, in {}; {}",
                    match matches!(limit.count, TraefikCount::Rate(_, true)) {
                        true => "all Traefiks together; here of this entry, in all gateways",
                        false => "each Traefik; here of this entry, in each gateway",
                    },
                    KeySource::counted_by(std::slice::from_ref(&limit.source))
                ),
                keyless: if limit.source.is_always() {
                    "every request has one".into()
                } else {
                    "in Traefik such requests share one count; in Diana they are not limited".into()
                },
            },
            comparison: None,
            exempt: Vec::new(),
            is_partial: false,
            processes: 1,
            model: Some(Box::new(RouterModel { limits: vec![limit.model()] })),
            unrounded: None,
        });
    }
    if rules.len() == limits.len() && rules.len() > 1 {
        let model =
            Box::new(RouterModel { limits: limits.iter().map(|it| it.limit.model()).collect() });
        let origins = rules.iter().map(|rule| rule.origin.clone()).collect();
        let title = title.clone();
        imported.objects.push(ImportedObject { title, rules: origins, model, unrounded: None });
    }
    if !rules.is_empty() {
        let origin = router.origin.clone();
        imported.entries.push(ImportedEntry { origin, title, keys, rules });
    }
}
