//! The limits of Envoy Gateway's BackendTrafficPolicy, with the HTTPRoutes and Gateways that it is for.
//!
//! Envoy Gateway gives each route of Envoy separate counts: each match of each rule of an
//! HTTPRoute, on each of its hosts. Their names contain the name of the HTTPRoute, so an entry
//! selects its routes by their names.

mod rule;

use diana_policy::tree::Tree;

use super::{FormatReader, ImportFormat};
use crate::buckets::{BucketSize, Buckets, BucketsModel};
use crate::condition::RequestCondition;
use crate::gateway_routes::{GatewayRoute, GatewayRoutes, route_key, text_or};
use crate::key::KeySource;
use crate::manifest::{ManifestNode, ManifestObject};
use crate::model::LimiterModel;
use crate::outcome::{Imported, ImportedEntry, ImportedObject, ImportedRule, RuleDifferences};
use crate::routes::Covered;
use crate::source::Origin;
use crate::traffic::part_header;
use crate::windows::{CountedWindows, WindowSize, WindowsModel};
use rule::{PolicyRule, RequestCost};

/// `envoy-gateway` in the registry.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "envoy-gateway", reader: || Box::<PolicyReader>::default() };

#[derive(Default)]
struct PolicyReader {
    policies: Vec<TrafficPolicy>,
    routes: GatewayRoutes,
    notes: Imported,
}

/// A BackendTrafficPolicy.
#[derive(Debug)]
struct TrafficPolicy {
    origin: Origin,
    /// `<namespace>/<name>`.
    name: String,
    /// Kind, namespace and name, and the section of each target.
    targets: Vec<(String, String, Option<String>)>,
    /// Whether it adds to the policy of the Gateway.
    is_merged: bool,
    is_global: bool,
    rules: Vec<PolicyRule>,
}

impl FormatReader for PolicyReader {
    fn object(&mut self, object: &ManifestObject) -> bool {
        let root = object.root();
        match root.text_of("kind") {
            Some("BackendTrafficPolicy") if root.descend("spec.rateLimit").is_some() => {
                self.read_policy(&root);
                true
            }
            _ => {
                self.routes.read(&root);
                false
            }
        }
    }

    fn finish(self: Box<Self>) -> Imported {
        let PolicyReader { policies, routes, notes: mut imported } = *self;
        for policy in &policies {
            for (kind, name, section) in &policy.targets {
                let places = match kind.as_str() {
                    "Gateway" => of_gateway(name, &policies, &routes),
                    _ => of_route(kind, name, section.as_deref(), routes.find(kind, name)),
                };
                if places.is_empty() {
                    let reason = "no HTTPRoute of these files takes this policy; export them by `kubectl get httproute,backendtrafficpolicy -A -o yaml`";
                    imported.gaps.add(policy.origin.clone(), format!("{kind} {name}"), reason);
                }
                for rule in &policy.rules {
                    import(policy, rule, &places, &mut imported);
                }
                // With more places a rule has several counts.
                if let ([_], [_]) = (places.as_slice(), policy.targets.as_slice()) {
                    imported.objects.extend(object(policy));
                }
            }
        }
        imported.entries.sort_by(|one, other| one.origin.cmp(&other.origin));
        imported
    }
}

impl PolicyReader {
    fn read_policy(&mut self, root: &ManifestNode<'_>) {
        let namespace = text_or(root, "metadata.namespace", "default");
        let name = format!("{namespace}/{}", text_or(root, "metadata.name", "unnamed"));
        let list = root.descend("spec.targetRefs").map(|it| it.items()).unwrap_or_default();
        let targets = list.into_iter().chain(root.descend("spec.targetRef"));
        let targets = targets
            .map(|target| {
                let name = text_or(&target, "name", "unnamed");
                let section = target.text_of("sectionName").map(str::to_owned);
                (text_or(&target, "kind", "HTTPRoute"), format!("{namespace}/{name}"), section)
            })
            .collect();
        if let Some(selectors) = root.descend("spec.targetSelectors") {
            let reason = "labels choose its targets; name them in `targetRefs`";
            self.notes.gaps.add(selectors.origin(), "targetSelectors", reason);
        }
        let mut found = Vec::new();
        let is_global = root.descend("spec.rateLimit.global").is_some();
        for path in ["spec.rateLimit.local", "spec.rateLimit.global"] {
            let Some(limits) = root.descend(path) else { continue };
            let rules = limits.get("rules").map(|it| it.items()).unwrap_or_default();
            for rule in rules {
                match PolicyRule::read(&rule) {
                    Ok(read) if read.requests == 0 && path == "spec.rateLimit.local" => {
                        let reason = "Envoy refuses a local limit of 0 requests together with the routes that have it, so no limit of the policy \
                                      began to hold";
                        self.notes.inert.add(rule.origin(), format!("a rule of {name}"), reason);
                    }
                    Ok(rule) => found.push(rule),
                    Err(why) => {
                        self.notes.gaps.add(rule.origin(), format!("a rule of {name}"), why)
                    }
                }
            }
        }
        self.policies.push(TrafficPolicy {
            origin: root.origin(),
            name,
            targets,
            is_merged: root.descend("spec.mergeType").is_some(),
            is_global,
            rules: found,
        });
    }
}

/// A place with separate counts: the beginning of the names of its routes.
struct CountedPlace {
    prefix: String,
    /// Whether it has several hosts, which Envoy Gateway counts apart.
    has_hosts: bool,
}

/// The places of the routes of a Gateway that have no policy instead.
fn of_gateway(name: &str, policies: &[TrafficPolicy], routes: &GatewayRoutes) -> Vec<CountedPlace> {
    let has_own = |route: &str| {
        policies.iter().filter(|policy| !policy.is_merged).any(|policy| {
            policy.targets.iter().any(|(kind, name, section)| {
                section.is_none() && kind != "Gateway" && route_key(kind, name) == route
            })
        })
    };
    let own = routes.of_gateway(name).filter(|(route, _)| !has_own(route));
    own.flat_map(|(route, it)| {
        let (kind, name) = route.split_once('/').unwrap_or_default();
        of_route(kind, name, None, Some(it))
    })
    .collect()
}

/// The places of a route, or of a rule of it.
fn of_route(
    kind: &str,
    name: &str,
    section: Option<&str>,
    route: Option<&GatewayRoute>,
) -> Vec<CountedPlace> {
    let whole = format!("{}/", route_key(kind, name));
    let Some(route) = route else {
        return vec![CountedPlace { prefix: whole, has_hosts: false }];
    };
    let has_hosts = route.hosts > 1;
    if let ([] | [(_, 0 | 1)], None) = (route.rules.as_slice(), section) {
        return vec![CountedPlace { prefix: whole, has_hosts }];
    }
    let mut places = Vec::new();
    for (number, (name, matches)) in route.rules.iter().enumerate() {
        if section.is_some() && section != name.as_deref() {
            continue;
        }
        let prefix = format!("{whole}rule/{number}/");
        match matches {
            0 | 1 => places.push(CountedPlace { prefix, has_hosts }),
            _ => places.extend((0..*matches).map(|number| CountedPlace {
                prefix: format!("{prefix}match/{number}/"),
                has_hosts,
            })),
        }
    }
    places
}

/// Imports a rule of a policy for its places.
fn import(
    policy: &TrafficPolicy,
    rule: &PolicyRule,
    places: &[CountedPlace],
    imported: &mut Imported,
) {
    let title = format!("a rule of the BackendTrafficPolicy {}", policy.name);
    let mut condition = rule.condition.clone();
    // Only without selectors: it is for the requests that no other rule is for.
    if !policy.is_global && rule.is_default {
        for other in policy.rules.iter().filter(|other| !other.is_default) {
            if let Err(why) = other.whole().and_then(|other| condition.and_not(other)) {
                let reason = format!("{why}, so it counts requests of another rule, too");
                imported.gaps.add(rule.origin.clone(), title.as_str(), reason);
            }
        }
    }
    let all: Vec<String> = places.iter().map(|place| place.prefix.clone()).collect();
    let groups: Vec<Vec<String>> = match rule.is_shared && policy.is_global && !all.is_empty() {
        true => vec![all],
        false => all.into_iter().map(|prefix| vec![prefix]).collect(),
    };
    if places.iter().any(|place| place.has_hosts) && !rule.is_shared {
        let reason =
            "Envoy Gateway counts each host of the route apart, the entry all of them together";
        imported.gaps.add(rule.origin.clone(), title.as_str(), reason);
    }
    for prefixes in groups {
        let covered = Covered { paths: vec!["/".into()], ..Covered::default() };
        let place = RequestCondition::of_route_prefixes(&prefixes);
        let keys = rule_keys(policy, rule).and_then(|keys| {
            let mut whole = condition.clone();
            whole.and(&place)?;
            Ok((keys, whole.entry_keys("Envoy", &covered)?))
        });
        let (rule_keys, (entry, remarks)) = match keys {
            Ok(keys) => keys,
            Err(why) => {
                imported.gaps.add(rule.origin.clone(), title.as_str(), why);
                continue;
            }
        };
        for remark in remarks {
            imported.gaps.add(rule.origin.clone(), title.as_str(), remark);
        }
        let rules = vec![imported_rule(policy, rule, rule_keys, &prefixes)];
        let (origin, title) = (rule.origin.clone(), title.clone());
        imported.entries.push(ImportedEntry { origin, title, keys: entry, rules });
    }
}

fn imported_rule(
    policy: &TrafficPolicy,
    rule: &PolicyRule,
    keys: Vec<(&'static str, Tree)>,
    prefixes: &[String],
) -> ImportedRule {
    let by = KeySource::counted_by(&rule.sources);
    let whose =
        if rule.is_shared && policy.is_global { "all routes of the policy" } else { "this route" };
    let (refused, belongs) = match policy.is_global {
        true => (
            "count in Envoy's service, in all rules that are for them; in Diana they do not",
            format!("{whose}, in all Envoys of the service, as here in all gateways; {by}"),
        ),
        false => (
            "do not count in this bucket, in both; Envoy has charged those that it checked before, Diana none",
            format!("{whose}, in each Envoy; here in each gateway; {by}"),
        ),
    };
    ImportedRule {
        origin: rule.origin.clone(),
        name: format!(
            "{}-{}",
            policy.name,
            prefixes.first().map_or("", |it| it
                .trim_end_matches('/')
                .rsplit("route/")
                .next()
                .unwrap_or_default())
        ),
        actors: rule.sources.iter().map(KeySource::actor).collect(),
        keys,
        status: 429,
        differences: RuleDifferences {
            refused: refused.into(),
            belongs,
            keyless: match rule.sources.as_slice() {
                [] => "all requests share one count".into(),
                sources if sources.iter().all(KeySource::is_always) => {
                    "every request has one".into()
                }
                _ => "the rule is not for such requests, in both".into(),
            },
        },
        comparison: None,
        exempt: Vec::new(),
        is_partial: !rule.condition.is_always(),
        processes: 1,
        model: model(policy, rule),
        unrounded: None,
    }
}

/// The keys of a rule.
///
/// # Errors
/// Why no rule expresses it.
fn rule_keys(
    policy: &TrafficPolicy,
    rule: &PolicyRule,
) -> Result<Vec<(&'static str, Tree)>, String> {
    let whole = |number: u64| Tree::Int(i128::from(number));
    let mut keys = match policy.is_global {
        false => bucket(rule).rule_keys(1)?,
        true => window(rule).rule_keys(),
    };
    match &rule.cost {
        RequestCost::Fixed(1) => {}
        RequestCost::Fixed(0) => {
            return Err("its requests cost nothing, and only check the limit".into());
        }
        RequestCost::Fixed(cost) => keys.push(("cost", whole(*cost))),
        RequestCost::Response { reserve, path } => {
            let path = Tree::List(path.iter().cloned().map(Tree::Text).collect());
            let usage = Tree::Map(vec![("metadata".into(), path)]);
            let cost = [
                ("response", usage),
                ("reserve", whole(*reserve)),
                ("max", whole(rule.requests)),
                ("missing", "reserve".into()),
            ];
            let cost = cost.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            keys.push(("cost", Tree::Map(cost)));
        }
    }
    if rule.is_shadow {
        keys.push(("shadow", Tree::Bool(true)));
    }
    Ok(keys)
}

fn bucket(rule: &PolicyRule) -> BucketSize {
    let PolicyRule { requests, seconds, .. } = *rule;
    BucketSize { most: requests, fill: requests, interval: seconds * 1000 }
}

/// The rules that may be for one request, together.
fn object(policy: &TrafficPolicy) -> Option<ImportedObject> {
    let mut all = RequestCondition::default();
    let mut rules: Vec<&PolicyRule> = Vec::new();
    for rule in &policy.rules {
        let mut both = all.clone();
        let is_possible = both.and(&rule.condition).is_ok() && both.is_possible();
        let is_other = rule.is_default && !policy.is_global;
        if is_possible && !is_other && !rule.is_shadow && model(policy, rule).is_some() {
            all = both;
            rules.push(rule);
        }
    }
    if !(2..=32).contains(&rules.len()) {
        return None;
    }
    // Envoy charges the slowest bucket first.
    if !policy.is_global {
        rules.sort_by_key(|rule| rule.requests.saturating_mul(1_000_000) / rule.seconds);
    }
    let part = |number: usize, rule: &PolicyRule| {
        (!rule.condition.is_always()).then(|| part_header(number))
    };
    let numbered = rules.iter().enumerate();
    let model: Box<dyn LimiterModel> = match policy.is_global {
        true => {
            let windows = numbered.map(|(number, rule)| windows(rule, part(number, rule)));
            Box::new(WindowsModel { windows: windows.collect() })
        }
        false => {
            let buckets = numbered.map(|(number, rule)| buckets(rule, part(number, rule)));
            Box::new(BucketsModel { buckets: buckets.collect() })
        }
    };
    let title = format!("the BackendTrafficPolicy {}", policy.name);
    let rules = rules.iter().map(|rule| rule.origin.clone()).collect();
    Some(ImportedObject { title, rules, model, unrounded: None })
}

fn window(rule: &PolicyRule) -> WindowSize {
    WindowSize { most: rule.requests, seconds: rule.seconds }
}

fn windows(rule: &PolicyRule, part: Option<String>) -> CountedWindows {
    let cost = if let RequestCost::Fixed(cost) = rule.cost { cost } else { 1 };
    let mut windows = CountedWindows::new(window(rule), rule.sources.clone(), cost);
    windows.part = part;
    windows
}

/// Buckets for the number of values that Envoy Gateway lets Envoy keep.
fn buckets(rule: &PolicyRule, part: Option<String>) -> Buckets {
    let mut buckets = Buckets::new(bucket(rule), rule.sources.clone(), 1, 10_000);
    buckets.part = part;
    buckets
}

/// The model of a rule, if generated requests can test it.
fn model(policy: &TrafficPolicy, rule: &PolicyRule) -> Option<Box<dyn LimiterModel>> {
    if matches!(rule.cost, RequestCost::Response { .. }) {
        return None;
    }
    match policy.is_global {
        true => WindowsModel::of(windows(rule, None)),
        false => BucketsModel::of(buckets(rule, None)),
    }
}
