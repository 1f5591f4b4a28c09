//! The places where limits apply: listeners, virtual hosts and routes.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use diana_policy::tree::Tree;
use hashbrown::HashMap;

use super::limit::{FilterLimit, Inheritance, LimitKind, rate_limits};
use crate::envoy::actions::RateLimitActions;
use crate::envoy::fields::{TypedConfig, camel, field, flag, items, text, typed};
use crate::manifest::ManifestNode;
use crate::outcome::Imported;
use crate::routes::{Covered, HostPath, PathKind, Routes};
use crate::source::Origin;

/// The types of the configurations of filters and routes.
const LOCAL: &str = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
const SERVICE: &str = "envoy.extensions.filters.http.ratelimit.v3.RateLimit";
const SERVICE_OF_ROUTE: &str = "envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute";

/// The usual name of the filter of the rate limit service.
const SERVICE_FILTER: &str = "envoy.filters.http.ratelimit";

/// Fields of the messages in which limits are.
const FIELDS: [&str; 2] = ["http_filters", "virtual_hosts"];

/// Listeners and route configurations with their limits.
#[derive(Default)]
pub(super) struct EnvoyConfiguration {
    pub(super) limits: Vec<FilterLimit>,
    /// Different rate limits.
    rate_limits: Vec<Rc<RateLimitActions>>,
    /// Their numbers, by their contents.
    known: HashMap<String, usize>,
    /// The limit of the service for routes of which no listener is known.
    service: Option<usize>,
    chains: Vec<FilterChain>,
    tables: Vec<RouteTable>,
    /// The chains of EnvoyFilters, by the names of their pods.
    patched: HashMap<String, usize>,
    /// The tables of these chains.
    patched_tables: HashMap<usize, usize>,
}

/// The filters of a connection manager, or what EnvoyFilters of the same pods add to them.
#[derive(Debug)]
struct FilterChain {
    origin: Origin,
    title: String,
    /// Filters by their names, and the numbers of their limits.
    filters: Vec<(String, Option<usize>)>,
    /// The name of its route configuration.
    routes: Option<String>,
    /// Whether EnvoyFilters make it.
    is_patched: bool,
}

/// A route configuration.
#[derive(Debug)]
struct RouteTable {
    name: String,
    own: OwnConfig,
    hosts: Vec<VirtualHost>,
}

#[derive(Debug)]
struct VirtualHost {
    domains: Vec<String>,
    own: OwnConfig,
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    origin: Origin,
    name: String,
    path: (String, PathKind),
    /// Whether it matches by headers or parameters, too.
    has_conditions: bool,
    includes: bool,
    /// Whether it leads to a cluster.
    is_forwarding: bool,
    own: OwnConfig,
}

/// The configuration of a route, or of its virtual host or table.
#[derive(Debug, Default)]
struct OwnConfig {
    /// Numbers of rate limits.
    actions: Vec<usize>,
    /// By the name of the filter: the number of the limit, or none if it is off here.
    limits: Vec<(String, Option<usize>)>,
}

/// The routes to which a limit applies with the same rate limits.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) limit: usize,
    /// The rate limits; none for the bucket of all requests, which they do not change.
    pub(super) actions: Option<Vec<Rc<RateLimitActions>>>,
    /// Their numbers.
    pub(super) numbers: Vec<usize>,
    pub(super) covered: Covered,
}

/// All groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// In the order of their limits. Limits of the rate limit service have one for each rate limit.
    pub(super) list: Vec<Group>,
    /// The rate limits that a route has together, by their limits.
    pub(super) together: BTreeSet<(usize, Vec<usize>)>,
}

/// The numbers of a table, a virtual host and a route.
type RouteNumber = (usize, usize, usize);

/// A limit with the numbers of rate limits; without them its bucket of all requests.
type GroupKey = (usize, Option<Vec<usize>>);

impl EnvoyConfiguration {
    /// Reads any message. Returns true if it has limits.
    pub(super) fn read(&mut self, node: &ManifestNode<'_>, notes: &mut Imported) -> bool {
        if !has_field(node.tree()) {
            return false;
        }
        let before = self.limits.len();
        self.walk(node, "the listener", notes);
        self.limits.len() > before
    }

    fn walk(&mut self, node: &ManifestNode<'_>, place: &str, notes: &mut Imported) {
        if field(node, "http_filters").is_some() {
            return self.read_chain(node, place, notes);
        }
        if field(node, "virtual_hosts").is_some() {
            let table = self.read_table(node, notes);
            self.tables.push(table);
            return;
        }
        let is_listener = field(node, "filter_chains").is_some();
        let name = text(node, "name").filter(|_| is_listener);
        let place = name.map_or_else(|| place.to_owned(), |name| format!("the listener {name}"));
        let children = match node.tree() {
            Tree::List(_) => node.items(),
            _ => node.pairs().into_iter().map(|(_, child)| child).collect(),
        };
        for child in children.iter().filter(|child| has_field(child.tree())) {
            self.walk(child, &place, notes);
        }
    }

    fn read_chain(&mut self, node: &ManifestNode<'_>, place: &str, notes: &mut Imported) {
        let mut filters = Vec::new();
        for filter in items(node, "http_filters") {
            let name = text(&filter, "name").unwrap_or_default();
            let config = field(&filter, "typed_config");
            if let Some(limit) = config.and_then(|config| self.limit(&config, place, notes)) {
                let is_off = flag(&filter, "disabled") == Some(true);
                filters.push((name, limit.filter(|_| !is_off)));
            }
        }
        let routes = match field(node, "route_config") {
            Some(table) => {
                let mut table = self.read_table(&table, notes);
                // Other chains do not refer to it.
                table.name = format!("{} #{}", table.name, self.tables.len());
                let name = table.name.clone();
                self.tables.push(table);
                Some(name)
            }
            None => text(node, "rds.route_config_name"),
        };
        let (origin, title) = (node.origin(), place.to_owned());
        self.chains.push(FilterChain { origin, title, filters, routes, is_patched: false });
    }

    /// The number of a limit in a typed configuration: `Some(None)` if it sets no limit there,
    /// `None` if it is of another type.
    fn limit(
        &mut self,
        node: &ManifestNode<'_>,
        place: &str,
        notes: &mut Imported,
    ) -> Option<Option<usize>> {
        let (name, fields) = match typed(node)? {
            TypedConfig::Off => return Some(None),
            TypedConfig::Message(name, fields) => (name, fields),
        };
        let limit = if name.ends_with(LOCAL) {
            FilterLimit::local(&fields, place, notes)
        } else if name.ends_with(SERVICE) || name.ends_with(SERVICE_OF_ROUTE) {
            Some(FilterLimit::service(&fields, place, notes))
        } else {
            return None;
        };
        Some(limit.map(|mut limit| {
            limit.actions = self.numbered(rate_limits(&fields, "rate_limits", None, notes));
            self.add_limit(limit)
        }))
    }

    /// The number of a limit.
    fn add_limit(&mut self, limit: FilterLimit) -> usize {
        // Several listeners may send their requests to one domain.
        let is_same = |known: &FilterLimit| limit.is_same_service(known);
        self.limits.iter().position(is_same).unwrap_or_else(|| {
            self.limits.push(limit);
            self.limits.len() - 1
        })
    }

    /// The numbers of rate limits. Those with the same contents have the same number.
    fn numbered(&mut self, all: Vec<RateLimitActions>) -> Vec<usize> {
        let EnvoyConfiguration { rate_limits, known, .. } = self;
        let number = |actions: RateLimitActions| {
            *known.entry(actions.contents()).or_insert_with(|| {
                rate_limits.push(Rc::new(actions));
                rate_limits.len() - 1
            })
        };
        all.into_iter().map(number).collect()
    }

    /// The rate limit service has this domain only, and no listener has its filter: all routes use it.
    pub(super) fn add_service(&mut self, domain: &str, origin: Origin) {
        let has_domain = |limit: &FilterLimit| matches!(&limit.kind, LimitKind::Service(it) if it.domain.is_some());
        if !self.limits.iter().any(has_domain) {
            self.service = Some(self.limits.len());
            self.limits.push(FilterLimit::of_domain(domain, origin));
        }
    }

    fn own(
        &mut self,
        node: &ManifestNode<'_>,
        limits: &str,
        place: &str,
        notes: &mut Imported,
    ) -> OwnConfig {
        let cluster = text(node, "route.cluster");
        let mut actions = rate_limits(node, limits, cluster.as_deref(), notes);
        for actions in actions.iter_mut().filter(|actions| actions.cost != 1) {
            let reason = "Envoy reads it in `rate_limits` of filters and of `typed_per_filter_config` only, so a request costs 1";
            notes.inert.add(actions.origin.clone(), "hits_addend", reason);
            actions.cost = 1;
        }
        let actions = self.numbered(actions);
        let configs = field(node, "typed_per_filter_config");
        let configs = configs.map(|it| it.pairs()).unwrap_or_default();
        let limits = configs
            .into_iter()
            .filter_map(|(name, config)| {
                Some((name.to_owned(), self.limit(&config, place, notes)?))
            })
            .collect();
        OwnConfig { actions, limits }
    }

    fn read_table(&mut self, node: &ManifestNode<'_>, notes: &mut Imported) -> RouteTable {
        let name = text(node, "name").unwrap_or_default();
        let own = self.own(node, "", &format!("the route configuration {name}"), notes);
        let mut hosts = Vec::new();
        for host in items(node, "virtual_hosts") {
            let title = text(&host, "name").unwrap_or_default();
            let own = self.own(&host, "rate_limits", &format!("the virtual host {title}"), notes);
            let routes = items(&host, "routes");
            let routes = routes.iter().map(|route| self.read_route(route, &title, notes)).collect();
            let domains = items(&host, "domains");
            let domains = domains.iter().filter_map(|it| Some(domain(it.tree().text()?))).collect();
            hosts.push(VirtualHost { domains, own, routes });
        }
        RouteTable { name, own, hosts }
    }

    fn read_route(&mut self, node: &ManifestNode<'_>, host: &str, notes: &mut Imported) -> Route {
        let name = text(node, "name").unwrap_or_default();
        let path = |kind: &str| text(node, &format!("match.{kind}"));
        let path = None
            .or_else(|| path("path").map(|it| (it, PathKind::Exact)))
            .or_else(|| path("path_separated_prefix").map(|it| (it, PathKind::Prefix)))
            .or_else(|| path("safe_regex.regex").map(|it| (it, PathKind::Regex)))
            .unwrap_or_else(|| (path("prefix").unwrap_or_else(|| "/".into()), PathKind::Text));
        let has = |kind: &str| !items(node, &format!("match.{kind}")).is_empty();
        let title = if name.is_empty() { format!("{host}{}", path.0) } else { name.clone() };
        Route {
            origin: node.origin(),
            has_conditions: has("headers") || has("query_parameters"),
            includes: flag(node, "route.include_vh_rate_limits") == Some(true),
            is_forwarding: field(node, "route").is_some(),
            own: self.own(node, "route.rate_limits", &format!("the route {title}"), notes),
            name,
            path,
        }
    }
}

/// Returns true if there is such a field anywhere in a tree.
fn has_field(tree: &Tree) -> bool {
    match tree {
        Tree::List(items) => items.iter().any(has_field),
        Tree::Map(pairs) => pairs.iter().any(|(key, value)| {
            FIELDS.iter().any(|name| key == name || *key == camel(name)) || has_field(value)
        }),
        _ => false,
    }
}

/// A domain without its port. An empty one stands for all.
fn domain(text: &str) -> String {
    let bare = match text.rsplit_once(':') {
        Some((host, port)) if port == "*" || port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => text,
    };
    if bare == "*" { String::new() } else { bare.to_ascii_lowercase() }
}

impl EnvoyConfiguration {
    fn route(&self, (table, host, route): RouteNumber) -> Option<(&VirtualHost, &Route)> {
        let host = self.tables.get(table)?.hosts.get(host)?;
        Some((host, host.routes.get(route)?))
    }

    fn numbers(&self, table: usize) -> Vec<RouteNumber> {
        let hosts = self.tables.get(table).map(|it| it.hosts.as_slice()).unwrap_or_default();
        let routes = |(number, host): (usize, &VirtualHost)| {
            (0..host.routes.len()).map(move |route| (table, number, route)).collect::<Vec<_>>()
        };
        hosts.iter().enumerate().flat_map(routes).collect()
    }

    /// All groups, in the order of their limits.
    pub(super) fn groups(&self, imported: &mut Imported) -> Groups {
        let mut routes: BTreeMap<GroupKey, BTreeSet<RouteNumber>> = BTreeMap::new();
        // Groups of limits of a filter with all routes of their listeners.
        let mut whole: BTreeSet<GroupKey> = BTreeSet::new();
        let mut together = BTreeSet::new();
        let mut is_used = vec![false; self.tables.len()];
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, table) in self.tables.iter().enumerate() {
            by_name.entry(&table.name).or_default().push(number);
        }
        for chain in &self.chains {
            // The filter itself is elsewhere.
            if chain.is_patched && chain.filters.is_empty() {
                continue;
            }
            let name = chain.routes.as_ref();
            let tables =
                name.and_then(|name| by_name.get(name.as_str())).cloned().unwrap_or_default();
            let numbers: Vec<RouteNumber> =
                tables.iter().flat_map(|it| self.numbers(*it)).collect();
            tables.iter().for_each(|it| {
                if let Some(used) = is_used.get_mut(*it) {
                    *used = true
                }
            });
            for (name, limit) in &chain.filters {
                // The number of routes of each group.
                let mut counts: BTreeMap<GroupKey, usize> = BTreeMap::new();
                for number in &numbers {
                    for key in self.keys(*number, name, *limit, &mut together) {
                        routes.entry(key.clone()).or_default().insert(*number);
                        *counts.entry(key).or_insert(0) += 1;
                    }
                }
                if let (Some(limit), true) = (limit, numbers.is_empty()) {
                    let keys = self.keys_of(*limit, &[]);
                    routes.extend(keys.iter().map(|key| (key.clone(), BTreeSet::new())));
                    counts.extend(keys.into_iter().map(|key| (key, 0)));
                }
                let is_everywhere = |(_, count): &(GroupKey, usize)| *count == numbers.len();
                whole.extend(counts.into_iter().filter(is_everywhere).map(|(key, _)| key));
                if limit.is_some() && self.chains.len() > 1 {
                    let reason = format!(
                        "the filter is in {} only; a document is for the listener that has it",
                        chain.title
                    );
                    imported.gaps.add(chain.origin.clone(), name.as_str(), reason);
                }
            }
            self.note_other_names(chain, &numbers, imported);
        }
        for (table, _) in is_used.iter().enumerate().filter(|(_, is_used)| !**is_used) {
            for number in self.numbers(table) {
                let names = self.names(number).into_iter().map(|name| (name, None));
                let service =
                    self.service.map(|service| (SERVICE_FILTER.to_owned(), Some(service)));
                for (name, default) in names.chain(service) {
                    for key in self.keys(number, &name, default, &mut together) {
                        routes.entry(key).or_default().insert(number);
                    }
                }
            }
        }
        Groups { list: self.covered(routes, &whole, imported), together }
    }

    /// The names of filters with a limit at a route.
    fn names(&self, number: RouteNumber) -> BTreeSet<String> {
        let own = self.owns(number).into_iter().flat_map(|own| &own.limits);
        own.map(|(name, _)| name.clone()).collect()
    }

    /// The configuration of a route, of its virtual host and of its table, in this order.
    fn owns(&self, number: RouteNumber) -> Vec<&OwnConfig> {
        let Some((host, route)) = self.route(number) else { return Vec::new() };
        let table = self.tables.get(number.0);
        [&route.own, &host.own].into_iter().chain(table.map(|table| &table.own)).collect()
    }

    /// The groups of a filter to which a route belongs.
    fn keys(
        &self,
        number: RouteNumber,
        filter: &str,
        default: Option<usize>,
        together: &mut BTreeSet<(usize, Vec<usize>)>,
    ) -> Vec<GroupKey> {
        let own = self.owns(number).into_iter().find_map(|own| {
            own.limits.iter().find(|(name, _)| name == filter).map(|(_, limit)| *limit)
        });
        let Some(limit) = own.unwrap_or(default) else { return Vec::new() };
        let actions = self.actions(number, limit);
        // The configuration of a route may have no domain: then it is that of the filter.
        let is_whole = self.limits.get(limit).is_some_and(FilterLimit::is_whole);
        let Some(limit) = (if is_whole { Some(limit) } else { default }) else { return Vec::new() };
        let keys = self.keys_of(limit, &actions);
        together.insert((limit, actions));
        keys
    }

    /// The groups of a limit with these rate limits of a route.
    fn keys_of(&self, number: usize, actions: &[usize]) -> Vec<GroupKey> {
        let Some(limit) = self.limits.get(number) else { return Vec::new() };
        let actions = if actions.is_empty() { &limit.actions } else { actions };
        match &limit.kind {
            LimitKind::Local(local) => {
                let default =
                    (local.is_default_always && local.default.is_some()).then_some((number, None));
                [(number, Some(actions.to_vec()))].into_iter().chain(default).collect()
            }
            LimitKind::Service(_) => {
                actions.iter().map(|actions| (number, Some(vec![*actions]))).collect()
            }
        }
    }

    /// The rate limits of a limit at a route.
    fn actions(&self, number: RouteNumber, limit: usize) -> Vec<usize> {
        let (Some(limit), Some((host, route))) = (self.limits.get(limit), self.route(number))
        else {
            return Vec::new();
        };
        if !limit.actions.is_empty() {
            return limit.actions.clone();
        }
        if !route.is_forwarding {
            return Vec::new();
        }
        let inherits = match limit.inheritance {
            _ if route.includes => true,
            Inheritance::Include => true,
            Inheritance::Ignore => false,
            Inheritance::Override => route.own.actions.is_empty(),
        };
        let inherited = host.own.actions.iter().filter(|_| inherits);
        let all = route.own.actions.iter().chain(inherited).copied();
        let stage = |actions: &usize| Some(self.rate_limits.get(*actions)?.stage);
        all.filter(|actions| stage(actions) == Some(limit.stage)).collect()
    }

    /// Limits of routes for filters that their listener does not have.
    fn note_other_names(
        &self,
        chain: &FilterChain,
        numbers: &[RouteNumber],
        imported: &mut Imported,
    ) {
        let mut noted = BTreeSet::new();
        for own in numbers.iter().flat_map(|number| self.owns(*number)) {
            for (name, limit) in &own.limits {
                let is_known = chain.filters.iter().any(|(known, _)| known == name);
                let Some(limit) = limit.filter(|limit| !is_known && noted.insert(*limit)) else {
                    continue;
                };
                let Some(limit) = self.limits.get(limit) else { continue };
                let reason = format!(
                    "{} has no filter with the name {name}, so Envoy does not read it",
                    chain.title
                );
                imported.inert.add(limit.origin.clone(), limit.title.as_str(), reason);
            }
        }
    }

    /// The requests of each group.
    fn covered(
        &self,
        groups: BTreeMap<GroupKey, BTreeSet<RouteNumber>>,
        whole: &BTreeSet<GroupKey>,
        imported: &mut Imported,
    ) -> Vec<Group> {
        let all: Vec<RouteNumber> =
            (0..self.tables.len()).flat_map(|it| self.numbers(it)).collect();
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for number in &all {
            if let Some((_, route)) = self.route(*number) {
                *names.entry(&route.name).or_insert(0) += 1;
            }
        }
        let owners: Vec<(&GroupKey, &BTreeSet<RouteNumber>)> = groups.iter().collect();
        let mut by_route: BTreeMap<RouteNumber, Vec<usize>> = BTreeMap::new();
        for (owner, (_, numbers)) in owners.iter().enumerate() {
            for number in *numbers {
                by_route.entry(*number).or_default().push(owner);
            }
        }
        let mut routes = Routes::new("Envoy");
        for ((limit, _), _) in &owners {
            if let Some(limit) = self.limits.get(*limit) {
                routes.add_owner(limit.title.clone(), limit.origin.clone());
            }
        }
        for number in &all {
            let Some((host, route)) = self.route(*number) else { continue };
            let own = by_route.get(number).map(Vec::as_slice).unwrap_or_default();
            for domain in &host.domains {
                let (path, kind) = route.path.clone();
                let place =
                    HostPath { host: domain.clone(), path, kind, origin: route.origin.clone() };
                // Envoy takes the first route of a path.
                if routes.owners_of(&place).is_none() {
                    routes.add(place, own);
                }
            }
        }
        let mut found = Vec::new();
        for (owner, (key, numbers)) in owners.into_iter().enumerate() {
            let own: Vec<&Route> =
                numbers.iter().filter_map(|it| Some(self.route(*it)?.1)).collect();
            let mut same: BTreeMap<&str, usize> = BTreeMap::new();
            own.iter().for_each(|route| *same.entry(&route.name).or_insert(0) += 1);
            // No other route has the name.
            let is_named =
                same.iter().all(|(name, count)| !name.is_empty() && names.get(name) == Some(count));
            let everything = Covered { paths: vec!["/".into()], ..Covered::default() };
            let covered = if whole.contains(key) || numbers.len() == all.len() {
                Some(everything)
            } else if is_named {
                let names: BTreeSet<String> = own.iter().map(|route| route.name.clone()).collect();
                Some(Covered { routes: names.into_iter().collect(), ..everything })
            } else {
                for route in own.iter().filter(|route| route.has_conditions) {
                    let about = format!("the route of {}", route.path.0);
                    let reason = "matches by headers or parameters, too; the entry covers its whole path: give each route a name, and the entry has its routes";
                    imported.gaps.add(route.origin.clone(), about, reason);
                }
                routes.of(owner, &mut imported.gaps)
            };
            let actions = key.1.as_ref().map(|numbers| {
                numbers.iter().filter_map(|it| self.rate_limits.get(*it).cloned()).collect()
            });
            let numbers = key.1.clone().unwrap_or_default();
            let group = |covered| Group { limit: key.0, actions, numbers, covered };
            found.extend(covered.map(group));
        }
        found
    }
}

impl EnvoyConfiguration {
    /// Reads an EnvoyFilter of Istio. Returns true if it has limits.
    pub(super) fn envoy_filter(&mut self, root: &ManifestNode<'_>, notes: &mut Imported) -> bool {
        let metadata = |key: &str| text(root, &format!("metadata.{key}"));
        let namespace = metadata("namespace").unwrap_or_else(|| "default".into());
        let labels = root.descend("spec.workloadSelector.labels").map(|it| it.pairs());
        let labels: BTreeSet<String> = labels
            .unwrap_or_default()
            .iter()
            .map(|(key, value)| format!("{key}={}", value.tree().text().unwrap_or_default()))
            .collect();
        let labels: Vec<String> = labels.into_iter().collect();
        let pods = if labels.is_empty() { "all pods".into() } else { labels.join(",") };
        // EnvoyFilters of the same pods work together.
        let chain = format!("{pods} in {namespace}");
        let place = format!("EnvoyFilter {namespace}/{}", metadata("name").unwrap_or_default());
        let mut is_read = false;
        for patch in items(root, "spec.configPatches") {
            let Some(value) = patch.descend("patch.value") else { continue };
            let operation = text(&patch, "patch.operation").unwrap_or_default();
            if operation == "REMOVE" {
                continue;
            }
            match text(&patch, "applyTo").as_deref() {
                Some("HTTP_FILTER") => {
                    let name = text(&value, "name").unwrap_or_default();
                    let config = field(&value, "typed_config");
                    let Some(limit) = config.and_then(|it| self.limit(&it, &place, notes)) else {
                        continue;
                    };
                    is_read = true;
                    let number = self.chain_of(&chain, &patch);
                    if let Some(chain) = self.chains.get_mut(number) {
                        chain.filters.push((name, limit));
                    }
                }
                Some("HTTP_ROUTE" | "VIRTUAL_HOST" | "ROUTE_CONFIGURATION") => {
                    is_read |= self.patch(&chain, &place, &patch, &value, notes);
                }
                _ => {}
            }
        }
        is_read
    }

    /// The number of the chain of some pods.
    fn chain_of(&mut self, title: &str, patch: &ManifestNode<'_>) -> usize {
        if let Some(number) = self.patched.get(title) {
            return *number;
        }
        self.patched.insert(title.to_owned(), self.chains.len());
        let routes = Some(title.to_owned());
        let (origin, title) = (patch.origin(), title.to_owned());
        self.chains.push(FilterChain {
            origin,
            title,
            filters: Vec::new(),
            routes,
            is_patched: true,
        });
        self.chains.len() - 1
    }

    /// Reads a patch of routes. Returns true if it has limits.
    fn patch(
        &mut self,
        chain: &str,
        place: &str,
        patch: &ManifestNode<'_>,
        value: &ManifestNode<'_>,
        notes: &mut Imported,
    ) -> bool {
        let of = |path: &str| text(patch, &format!("match.routeConfiguration.{path}"));
        let limits = match text(patch, "applyTo").as_deref() {
            Some("HTTP_ROUTE") => "route.rate_limits",
            Some("VIRTUAL_HOST") => "rate_limits",
            _ => "",
        };
        let (name, host) =
            (of("vhost.route.name").unwrap_or_default(), of("vhost.name").unwrap_or_default());
        let place =
            if name.is_empty() { place.to_owned() } else { format!("{place}, route {name}") };
        let own = self.own(value, limits, &place, notes);
        if own.actions.is_empty() && own.limits.is_empty() {
            return false;
        }
        let domain = match host.split('|').next() {
            // `inbound|http|8080` is a port of the pod.
            Some("inbound") => {
                let reason =
                    "an entry has no ports: it covers the requests of all ports of the pod";
                notes.gaps.add(patch.origin(), host.as_str(), reason);
                String::new()
            }
            _ => domain(&host),
        };
        let origin = patch.origin();
        let route = |own: OwnConfig, name: &str| Route {
            origin: origin.clone(),
            name: name.to_owned(),
            path: ("/".into(), PathKind::Prefix),
            has_conditions: false,
            includes: false,
            is_forwarding: true,
            own,
        };
        let number = self.chain_of(chain, patch);
        let table = match self.patched_tables.get(&number) {
            Some(number) => *number,
            None => {
                self.patched_tables.insert(number, self.tables.len());
                // What no patch changes.
                let other = VirtualHost {
                    domains: vec![String::new()],
                    own: OwnConfig::default(),
                    routes: vec![route(OwnConfig::default(), "")],
                };
                let table = RouteTable {
                    name: chain.into(),
                    own: OwnConfig::default(),
                    hosts: vec![other],
                };
                self.tables.push(table);
                self.tables.len() - 1
            }
        };
        let Some(table) = self.tables.get_mut(table) else { return false };
        let domains = vec![domain];
        let known = table.hosts.iter_mut().find(|host| {
            host.domains == domains && host.routes.iter().any(|route| route.name == name)
        });
        match known.and_then(|host| host.routes.iter_mut().find(|route| route.name == name)) {
            Some(known) => {
                known.own.actions.extend(own.actions);
                known.own.limits.extend(own.limits);
            }
            None => table.hosts.push(VirtualHost {
                domains,
                own: OwnConfig::default(),
                routes: vec![route(own, &name)],
            }),
        }
        true
    }
}
