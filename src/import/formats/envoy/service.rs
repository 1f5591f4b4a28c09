//! The files of envoyproxy/ratelimit, the rate limit service.
//!
//! The service looks for the entries of a descriptor one by one, below each other: first a
//! descriptor with this value, then one with a pattern, then one without a value. The limit is that
//! of the last one. So each limit becomes an entry for the requests that match it.

use std::collections::{BTreeMap, BTreeSet};

use diana_policy::tree::Tree;
use hashbrown::{HashMap, HashSet};

use super::limit::{LimitKind, ServiceFilter};
use super::places::{EnvoyConfiguration, Group};
use super::{MOST, MOST_IN_OBJECT};
use crate::condition::RequestCondition;
use crate::envoy::actions::{Fit, MadeDescriptor, MadeValue, ValueSharing, WantedValue};
use crate::envoy::fields::{field, flag, items, number, text};
use crate::key::KeySource;
use crate::manifest::ManifestNode;
use crate::outcome::{Imported, ImportedEntry, ImportedObject, ImportedRule, RuleDifferences};
use crate::source::Origin;
use crate::traffic::part_header;
use crate::windows::{self, CountedWindows, WindowSize, WindowsModel};

/// The domains of the service.
#[derive(Default)]
pub(super) struct RateLimitService {
    domains: BTreeMap<String, ServiceDomain>,
}

struct ServiceDomain {
    origin: Origin,
    descriptors: Siblings,
    /// The number of its descriptors.
    count: usize,
}

/// Descriptors below the same one.
#[derive(Default)]
struct Siblings {
    /// In the order in which the service looks for them.
    list: Vec<ServiceDescriptor>,
    /// Positions of those with a value, by key and value.
    exact: HashMap<(String, String), usize>,
}

struct ServiceDescriptor {
    number: usize,
    origin: Origin,
    /// Its entries on one line.
    shown: String,
    key: String,
    /// A value or a pattern. None stands for all, each with a count.
    value: Option<String>,
    share: ValueSharing,
    limit: Option<ServiceLimit>,
    below: Siblings,
}

struct ServiceLimit {
    /// None if it is unlimited.
    size: Option<WindowSize>,
    name: String,
    /// The names of limits that do not apply together with it.
    replaces: Vec<String>,
    is_shadow: bool,
}

impl ServiceDescriptor {
    fn wanted(&self) -> WantedValue<'_> {
        match &self.value {
            None => WantedValue::Each,
            Some(pattern) if pattern.contains('*') => WantedValue::Like(pattern, self.share),
            Some(value) => WantedValue::One(value),
        }
    }

    fn about(&self) -> String {
        about(&self.shown)
    }

    /// The place in the order in which the service looks for siblings.
    fn order(&self) -> u8 {
        match self.wanted() {
            WantedValue::One(_) => 0,
            WantedValue::Like(..) => 1,
            WantedValue::Each => 2,
        }
    }
}

/// The subject of a remark about a descriptor with these entries.
fn about(shown: &str) -> String {
    format!("the descriptor {shown}")
}

/// A limit that applies to some requests.
struct CountedLimit<'s> {
    /// The number of the rate limit that makes its descriptor.
    maker: usize,
    group: &'s Group,
    cost: u64,
    descriptor: &'s ServiceDescriptor,
    limit: &'s ServiceLimit,
    fit: Fit,
    /// Whether another limit replaces it for all requests.
    is_replaced: bool,
    /// Whether it does not apply to requests of other limits.
    is_partial: bool,
}

impl RateLimitService {
    /// Reads a file of a domain. Returns false if it is none.
    pub(super) fn read(&mut self, root: &ManifestNode<'_>, notes: &mut Imported) -> bool {
        let list = items(root, "descriptors");
        let Some(domain) = text(root, "domain").filter(|_| !list.is_empty()) else { return false };
        let known = self.domains.entry(domain).or_insert_with(|| ServiceDomain {
            origin: root.origin(),
            descriptors: Siblings::default(),
            count: 0,
        });
        // The service merges the files of a domain, or refuses the second one.
        read_siblings(&list, "", &mut known.descriptors, &mut known.count, notes);
        true
    }

    /// The domain, if there is only one.
    pub(super) fn only_domain(&self) -> Option<(&str, Origin)> {
        let (domain, it) = self.domains.first_key_value()?;
        (self.domains.len() == 1).then(|| (domain.as_str(), it.origin.clone()))
    }

    /// Imports the limits that apply to the routes of groups.
    pub(super) fn import(
        &self,
        configuration: &EnvoyConfiguration,
        groups: &[Group],
        together: &BTreeSet<(usize, Vec<usize>)>,
        imported: &mut Imported,
    ) {
        let mut made: HashSet<(&str, usize)> = HashSet::new();
        for (number, limit) in configuration.limits.iter().enumerate() {
            let LimitKind::Service(filter) = &limit.kind else { continue };
            let Some(name) = &filter.domain else { continue };
            let groups: Vec<&Group> = groups.iter().filter(|it| it.limit == number).collect();
            let Some((name, domain)) = self.domains.get_key_value(name) else {
                let reason = "no file has this domain of the rate limit service; import its configuration with this one";
                imported.gaps.add(limit.origin.clone(), format!("the domain {name}"), reason);
                continue;
            };
            let mut is_made = |number| _ = made.insert((name, number));
            let mut counted = domain.counted(&groups, &mut is_made, imported);
            let lists: Vec<&[usize]> = together
                .iter()
                .filter(|(limit, _)| *limit == number)
                .map(|(_, list)| list.as_slice())
                .collect();
            replace(&mut counted, &lists, imported);
            let apart = apart(&lists);
            for one in &mut counted {
                one.is_partial = !one.fit.condition.is_always() || apart.contains(&one.maker);
            }
            for one in &counted {
                add(name, filter, one, imported);
            }
            for list in lists {
                imported.objects.extend(object(name, &counted, list));
            }
        }
        for (name, domain) in &self.domains {
            let is_made = |number| made.contains(&(name.as_str(), number));
            note_unmade(name, &domain.descriptors, &is_made, imported);
        }
    }
}

/// Reads descriptors below one with these entries.
fn read_siblings(
    nodes: &[ManifestNode<'_>],
    above: &str,
    siblings: &mut Siblings,
    count: &mut usize,
    notes: &mut Imported,
) {
    for node in nodes {
        let key = text(node, "key").unwrap_or_default();
        let value = text(node, "value").filter(|value| !value.is_empty());
        let own = value.as_ref().map_or_else(|| key.clone(), |value| format!("{key}={value}"));
        let shown = if above.is_empty() { own } else { format!("{above}, {own}") };
        if key.is_empty() {
            let reason = "found no `key`, so the service refuses its file";
            notes.gaps.add(node.origin(), "a descriptor", reason);
            continue;
        }
        let limit = field(node, "rate_limit").and_then(|rate| {
            read_limit(&rate, node)
                .map_err(|why| notes.gaps.add(rate.origin(), about(&shown), why))
                .ok()
        });
        if flag(node, "quota_mode") == Some(true) {
            let reason = "a request is refused if all limits in quota mode refuse it; the rule refuses it by itself";
            notes.gaps.add(node.origin(), about(&shown), reason);
        }
        let mut below = Siblings::default();
        read_siblings(&items(node, "descriptors"), &shown, &mut below, count, notes);
        let share = if flag(node, "share_threshold") == Some(true) {
            ValueSharing::Yes
        } else {
            ValueSharing::No
        };
        *count += 1;
        let number = *count;
        let origin = node.origin();
        siblings.list.push(ServiceDescriptor {
            number,
            origin,
            shown,
            key,
            value,
            share,
            limit,
            below,
        });
    }
    siblings.list.sort_by_key(ServiceDescriptor::order);
    siblings.exact.clear();
    let mut known = HashSet::new();
    siblings.list.retain(|it| {
        let is_new = known.insert((it.key.clone(), it.value.clone()));
        if !is_new {
            let reason = "another one has its key and value, so the service refuses its file";
            notes.gaps.add(it.origin.clone(), it.about(), reason);
        }
        is_new
    });
    let exact = siblings.list.iter().enumerate().filter_map(|(position, it)| match it.wanted() {
        WantedValue::One(value) => Some(((it.key.clone(), value.to_owned()), position)),
        _ => None,
    });
    siblings.exact = exact.collect();
}

/// Reads the limit of a descriptor.
///
/// # Errors
/// Why no rule expresses it.
fn read_limit(
    rate: &ManifestNode<'_>,
    descriptor: &ManifestNode<'_>,
) -> Result<ServiceLimit, String> {
    let size = match flag(rate, "unlimited") {
        Some(true) => None,
        _ => Some(WindowSize {
            most: number(rate, "requests_per_unit").unwrap_or(0),
            seconds: windows::seconds(&text(rate, "unit").unwrap_or_default())?,
        }),
    };
    Ok(ServiceLimit {
        size,
        name: text(rate, "name").unwrap_or_default(),
        replaces: items(rate, "replaces").iter().filter_map(|it| text(it, "name")).collect(),
        is_shadow: flag(descriptor, "shadow_mode") == Some(true),
    })
}

impl ServiceDomain {
    /// The limits that apply to requests of some groups.
    fn counted<'s>(
        &'s self,
        groups: &[&'s Group],
        is_made: &mut dyn FnMut(usize),
        imported: &mut Imported,
    ) -> Vec<CountedLimit<'s>> {
        let mut counted = Vec::new();
        // Descriptors with their fixed values: each is one count.
        let mut known: HashSet<(usize, Vec<&str>)> = HashSet::new();
        for group in groups {
            let all = group.actions.iter().flatten().zip(&group.numbers);
            for (actions, maker) in all.filter(|(actions, _)| actions.cost > 0) {
                for made in &actions.made {
                    let mut search = Search { made, found: Vec::new(), imported, is_made };
                    search.below(&self.descriptors, 0, made.whole());
                    let found = search.found;
                    let fixed: Vec<&str> = made.entries.iter().map(|it| it.value.fixed()).collect();
                    for (descriptor, limit, fit) in found {
                        if !known.insert((descriptor.number, fixed.clone())) {
                            let reason = "other requests share its count in the service; the rules count apart";
                            let origin = descriptor.origin.clone();
                            imported.gaps.add(origin, descriptor.about(), reason);
                        }
                        let (maker, cost) = (*maker, actions.cost);
                        counted.push(CountedLimit {
                            maker,
                            group,
                            cost,
                            descriptor,
                            limit,
                            fit,
                            is_replaced: false,
                            is_partial: false,
                        });
                    }
                }
            }
        }
        counted
    }
}

/// The search for the limits of a descriptor that actions make.
struct Search<'s, 'i> {
    made: &'i MadeDescriptor,
    found: Vec<(&'s ServiceDescriptor, &'s ServiceLimit, Fit)>,
    imported: &'i mut Imported,
    is_made: &'i mut dyn FnMut(usize),
}

impl<'s> Search<'s, '_> {
    /// Continues with one of the entries, for requests that match these siblings.
    fn below(&mut self, siblings: &'s Siblings, depth: usize, fit: Fit) {
        let made = self.made;
        let Some(entry) = made.entries.get(depth) else { return };
        if let MadeValue::Fixed(value) = &entry.value
            && let Some(position) = siblings.exact.get(&(entry.key.clone(), value.clone()))
        {
            let exact = siblings.list.get(*position);
            return exact.into_iter().for_each(|it| self.enter(it, depth, fit.clone()));
        }
        let (mut values, mut patterns): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for descriptor in siblings.list.iter().filter(|it| it.key == entry.key) {
            let wanted = descriptor.wanted();
            let mut own = fit.clone();
            match own.add(&entry.value, wanted) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    self.refuse(descriptor, &why);
                    continue;
                }
            }
            // Values exclude each other.
            if !matches!(wanted, WantedValue::One(_))
                && let Err(why) = own.exclude(&entry.value, &values, &patterns)
            {
                let reason = format!("{why}, so it counts requests of another descriptor, too");
                let origin = descriptor.origin.clone();
                self.imported.gaps.add(origin, descriptor.about(), reason);
            }
            self.enter(descriptor, depth, own);
            match wanted {
                // It has all requests that are left.
                _ if matches!(entry.value, MadeValue::Fixed(_)) => break,
                WantedValue::Like("*", _) => break,
                WantedValue::One(value) => values.push(value),
                WantedValue::Like(pattern, _) => patterns.push(pattern),
                WantedValue::Each => {}
            }
        }
    }

    /// The requests that match a descriptor.
    fn enter(&mut self, descriptor: &'s ServiceDescriptor, depth: usize, fit: Fit) {
        if depth + 1 < self.made.entries.len() {
            return self.below(&descriptor.below, depth + 1, fit);
        }
        (self.is_made)(descriptor.number);
        if let Some(limit) = &descriptor.limit {
            self.found.push((descriptor, limit, fit));
        }
    }

    /// Lists a descriptor and those below it as not imported.
    fn refuse(&mut self, descriptor: &'s ServiceDescriptor, why: &str) {
        let origin = descriptor.origin.clone();
        self.imported.gaps.add(origin, descriptor.about(), why);
        let mut all = vec![descriptor];
        while let Some(one) = all.pop() {
            (self.is_made)(one.number);
            all.extend(&one.below.list);
        }
    }
}

/// The rate limits that some routes have not, although these have another one of their lists.
fn apart(lists: &[&[usize]]) -> HashSet<usize> {
    let mut all: HashMap<usize, usize> = HashMap::new();
    let mut both: HashMap<(usize, usize), usize> = HashMap::new();
    for list in lists {
        for one in *list {
            *all.entry(*one).or_insert(0) += 1;
            list.iter().for_each(|other| *both.entry((*one, *other)).or_insert(0) += 1);
        }
    }
    let lacking = both.iter().filter(|((_, other), count)| all.get(other) != Some(*count));
    lacking.map(|((one, _), _)| *one).collect()
}

/// Limits do not apply to requests of those that replace them.
fn replace(counted: &mut [CountedLimit<'_>], lists: &[&[usize]], imported: &mut Imported) {
    let mut replacing: Vec<(&str, usize, Fit)> = Vec::new();
    for one in counted.iter() {
        let names = one.limit.replaces.iter();
        replacing.extend(names.map(|name| (name.as_str(), one.maker, one.fit.clone())));
    }
    for one in counted.iter_mut() {
        for (_, maker, fit) in replacing
            .iter()
            .filter(|(name, maker, _)| *name == one.limit.name && *maker != one.maker)
        {
            let own = lists.iter().filter(|list| list.contains(&one.maker));
            let (with, without): (Vec<&&[usize]>, Vec<_>) =
                own.partition(|list| list.contains(maker));
            if with.is_empty() {
                continue;
            }
            let mut note = |reason: &str| {
                imported.gaps.add(one.descriptor.origin.clone(), one.descriptor.about(), reason);
            };
            let whole = fit.whole();
            if whole.as_ref().is_ok_and(RequestCondition::is_always) && without.is_empty() {
                note("another limit replaces it for all requests");
                one.is_replaced = true;
                continue;
            }
            if !without.is_empty() {
                note(
                    "another limit replaces it on some of its routes; the rule counts their requests, too",
                );
                continue;
            }
            if let Err(why) = whole.and_then(|other| one.fit.condition.and_not(other)) {
                note(&format!("{why}, so it counts requests of the limit that replaces it, too"));
            }
        }
    }
}

/// The windows of a limit. None if it is none.
fn windows_of(one: &CountedLimit<'_>) -> Option<CountedWindows> {
    let size = one.limit.size.filter(|size| size.most <= MOST && !one.is_replaced)?;
    Some(CountedWindows::new(size, one.fit.sources.clone(), one.cost))
}

/// Adds the entry of a limit.
fn add(domain: &str, filter: &ServiceFilter, one: &CountedLimit<'_>, imported: &mut Imported) {
    let CountedLimit { group, cost, descriptor, limit, fit, is_partial, .. } = one;
    let Some(windows) = windows_of(one) else { return };
    let title = format!("{} of the domain {domain}", descriptor.about());
    let origin = descriptor.origin.clone();
    let (entry, remarks) = match fit.condition.entry_keys("Envoy", &group.covered) {
        Ok(keys) => keys,
        Err(why) => return imported.gaps.add(origin, title, why),
    };
    for remark in remarks {
        imported.gaps.add(origin.clone(), title.as_str(), remark);
    }
    let mut keys = limit.size.map(WindowSize::rule_keys).unwrap_or_default();
    if *cost != 1 {
        keys.push(("cost", Tree::Int(i128::from(*cost))));
    }
    if limit.is_shadow {
        keys.push(("shadow", Tree::Bool(true)));
    }
    let by = KeySource::counted_by(&fit.sources);
    let rule = ImportedRule {
        origin: origin.clone(),
        name: format!("{domain}-{}", descriptor.shown),
        actors: fit.sources.iter().map(KeySource::actor).collect(),
        keys,
        status: filter.status,
        differences: RuleDifferences {
            refused: "count in the service, in all limits that are for them; in Diana they do not"
                .into(),
            belongs: format!(
                "the domain {domain}, in all Envoys of the service, as here in all gateways; {by}"
            ),
            keyless: keyless(&fit.sources),
        },
        comparison: None,
        exempt: Vec::new(),
        is_partial: *is_partial,
        processes: 1,
        model: WindowsModel::of(windows),
        unrounded: None,
    };
    imported.entries.push(ImportedEntry { origin, title, keys: entry, rules: vec![rule] });
}

/// The treatment of requests without a value.
fn keyless(sources: &[KeySource]) -> String {
    match sources {
        [] => "all requests share one count".into(),
        sources if sources.iter().all(KeySource::is_always) => "every request has one".into(),
        _ => "no descriptor, so not limited by it, in both".into(),
    }
}

/// The limits that one request of a list of rate limits may match together.
fn object(domain: &str, counted: &[CountedLimit<'_>], list: &[usize]) -> Option<ImportedObject> {
    let mut all = RequestCondition::default();
    let mut found: Vec<(&CountedLimit<'_>, CountedWindows)> = Vec::new();
    for maker in list {
        for one in counted.iter().filter(|one| one.maker == *maker) {
            let mut both = all.clone();
            let is_possible = both.and(&one.fit.condition).is_ok() && both.is_possible();
            let Some(windows) = windows_of(one).filter(|_| is_possible) else { continue };
            if one.limit.is_shadow || !one.fit.sources.iter().all(KeySource::is_comparable) {
                continue;
            }
            all = both;
            found.push((one, windows));
            break;
        }
    }
    if !(2..=MOST_IN_OBJECT).contains(&found.len()) {
        return None;
    }
    let rules = found.iter().map(|(one, _)| one.descriptor.origin.clone()).collect();
    let windows = found.into_iter().enumerate().map(|(number, (one, mut windows))| {
        windows.part = one.is_partial.then(|| part_header(number));
        windows
    });
    let model = Box::new(WindowsModel { windows: windows.collect() });
    let title = format!("the domain {domain}");
    Some(ImportedObject { title, rules, model, unrounded: None })
}

/// Lists limits that apply to no request.
fn note_unmade(
    domain: &str,
    siblings: &Siblings,
    is_made: &dyn Fn(usize) -> bool,
    imported: &mut Imported,
) {
    for descriptor in &siblings.list {
        let is_limit = descriptor.limit.as_ref().is_some_and(|limit| limit.size.is_some());
        if is_limit && !is_made(descriptor.number) {
            let about = format!("{} of the domain {domain}", descriptor.about());
            let reason = "no `rate_limits` of these files make it; import the configuration of Envoy that does, such as a config dump";
            imported.gaps.add(descriptor.origin.clone(), about, reason);
        }
        note_unmade(domain, &descriptor.below, is_made, imported);
    }
}
