//! Envoy's rate limits: bootstraps, route configurations and config dumps, the same in Istio's
//! EnvoyFilter, and the files of the rate limit service (`service.rs`).
//!
//! The configuration of a filter, or its own one of a route, has a bucket for each descriptor, and one
//! for all requests. `rate_limits` make descriptors of requests. So each descriptor that they can
//! make becomes an entry for the requests that have it.

mod limit;
mod places;
mod service;

use std::collections::BTreeMap;

use diana_policy::tree::Tree;

use super::{FormatReader, ImportFormat};
use crate::buckets::{BucketSize, Buckets, BucketsModel};
use crate::condition::RequestCondition;
use crate::envoy::actions::{Fit, RateLimitActions};
use crate::key::KeySource;
use crate::manifest::ManifestObject;
use crate::outcome::{Imported, ImportedEntry, ImportedObject, ImportedRule, RuleDifferences};
use crate::source::Origin;
use crate::traffic::part_header;
use limit::{FilterLimit, LimitKind, LocalDescriptor, LocalLimit};
use places::{EnvoyConfiguration, Group, Groups};
use service::RateLimitService;

/// `envoy` in the registry.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "envoy", reader: || Box::<EnvoyReader>::default() };

/// The largest rate and burst of a rule. More tokens are no limit.
const MOST: u64 = 1_000_000_000;

/// Maximum number of rules that are compared together.
const MOST_IN_OBJECT: usize = 32;

#[derive(Default)]
struct EnvoyReader {
    configuration: EnvoyConfiguration,
    service: RateLimitService,
    notes: Imported,
}

impl FormatReader for EnvoyReader {
    fn object(&mut self, object: &ManifestObject) -> bool {
        let root = object.root();
        let EnvoyReader { configuration, service, notes } = self;
        if root.text_of("kind") == Some("EnvoyFilter") {
            return configuration.envoy_filter(&root, notes);
        }
        // Other objects of Kubernetes have no configuration of Envoy.
        root.get("apiVersion").is_none()
            && (service.read(&root, notes) || configuration.read(&root, notes))
    }

    fn finish(self: Box<Self>) -> Imported {
        let EnvoyReader { mut configuration, service, notes: mut imported } = *self;
        if let Some((domain, origin)) = service.only_domain() {
            configuration.add_service(domain, origin);
        }
        let Groups { list, together } = configuration.groups(&mut imported);
        // The descriptors of each limit that a rate limit makes.
        let mut made: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for group in &list {
            let Some(limit) = configuration.limits.get(group.limit) else { continue };
            let LimitKind::Local(local) = &limit.kind else { continue };
            let is_made =
                made.entry(group.limit).or_insert_with(|| vec![false; local.descriptors.len()]);
            import(limit, local, group, is_made, &mut imported);
        }
        service.import(&configuration, &list, &together, &mut imported);
        for (number, is_made) in made {
            let Some(limit) = configuration.limits.get(number) else { continue };
            let LimitKind::Local(local) = &limit.kind else { continue };
            for (descriptor, _) in
                local.descriptors.iter().zip(is_made).filter(|(_, is_made)| !is_made)
            {
                let reason = "no `rate_limits` where it applies make this descriptor";
                imported.inert.add(descriptor.origin.clone(), descriptor.shown(), reason);
            }
        }
        imported.entries.sort_by(|one, other| one.origin.cmp(&other.origin));
        imported
    }
}

/// A bucket of a group that requests pay.
struct PaidBucket<'l> {
    descriptor: &'l LocalDescriptor,
    actions: &'l RateLimitActions,
    fit: Fit,
    /// The requests that pay it: those with no other descriptor instead.
    condition: RequestCondition,
}

/// Imports a limit for the routes of a group.
fn import(
    whole: &FilterLimit,
    limit: &LocalLimit,
    group: &Group,
    is_made: &mut [bool],
    imported: &mut Imported,
) {
    let title = &*whole.title;
    let Some(all) = &group.actions else {
        return LocalRules { title, limit, group, imported }.add_default(&[]);
    };
    let mut paid: Vec<PaidBucket<'_>> = Vec::new();
    // Which rate limit makes each of them.
    let mut makers: Vec<usize> = Vec::new();
    for (maker, actions) in all.iter().enumerate() {
        if actions.has_disable_key {
            let reason = "it has a `disable_key`, with which local_ratelimit skips it";
            imported.inert.add(actions.origin.clone(), "a rate limit", reason);
        }
        if actions.cost == 0 || actions.has_disable_key {
            continue;
        }
        for made in &actions.made {
            let first = paid.len();
            // A descriptor without a value is for the requests that no other one is for.
            let (exact, wild): (Vec<_>, Vec<_>) =
                limit.descriptors.iter().enumerate().partition(|(_, it)| !it.is_wild());
            for (number, descriptor) in exact.into_iter().chain(wild) {
                let fit = match made.fits(&descriptor.entries) {
                    Ok(Some(fit)) => fit,
                    Ok(None) => continue,
                    Err(why) => {
                        imported.gaps.add(descriptor.origin.clone(), descriptor.shown(), why);
                        continue;
                    }
                };
                if is_made.get_mut(number).is_some_and(|is_made| std::mem::replace(is_made, true)) {
                    let reason = "other requests share its bucket in Envoy; the rules count apart";
                    imported.gaps.add(descriptor.origin.clone(), descriptor.shown(), reason);
                }
                let mut condition = fit.condition.clone();
                let others = paid.get(first..).filter(|_| descriptor.is_wild());
                for other in others.unwrap_or_default() {
                    if let Err(why) = other.fit.whole().and_then(|other| condition.and_not(other)) {
                        imported.gaps.add(descriptor.origin.clone(), descriptor.shown(), why);
                    }
                }
                paid.push(PaidBucket { descriptor, actions, fit, condition });
                makers.push(maker);
            }
        }
    }
    let mut rules = LocalRules { title, limit, group, imported };
    for bucket in &paid {
        rules.add_bucket(bucket);
    }
    if !limit.is_default_always {
        rules.add_default(&paid);
    }
    rules.add_object(&paid, &makers);
}

/// Collects the rules of a limit for a group.
struct LocalRules<'l, 'i> {
    title: &'l str,
    limit: &'l LocalLimit,
    group: &'l Group,
    imported: &'i mut Imported,
}

impl LocalRules<'_, '_> {
    fn add_bucket(&mut self, bucket: &PaidBucket<'_>) {
        let PaidBucket { descriptor, actions, fit, condition } = bucket;
        let title = format!("{} of {}", descriptor.shown(), self.title);
        let values =
            descriptor.entries.iter().map(|(key, value)| value.as_ref().unwrap_or(key).as_str());
        let name = format!("{}-{}", self.limit.name, values.collect::<Vec<_>>().join("-"));
        let buckets = self.buckets(descriptor.size, fit.sources.clone(), actions.cost);
        let condition = condition.clone();
        let shadow = self.limit.is_shadow || descriptor.is_shadow;
        self.add(descriptor.origin.clone(), title, name, buckets, condition, shadow);
    }

    /// The bucket of all requests, or of those without a descriptor.
    fn add_default(&mut self, paid: &[PaidBucket<'_>]) {
        let Some((size, origin)) = self.limit.default.clone() else { return };
        if size.most > MOST {
            return;
        }
        let mut condition = RequestCondition::default();
        for bucket in paid {
            let whole = bucket.fit.whole();
            // Every request has a descriptor.
            if whole.as_ref().is_ok_and(RequestCondition::is_always) {
                return;
            }
            if let Err(why) = whole.and_then(|whole| condition.and_not(whole)) {
                let reason = format!("{why}, so it counts requests with a descriptor, too");
                self.imported.gaps.add(origin.clone(), self.title, reason);
            }
        }
        let buckets = self.buckets(size, Vec::new(), 1);
        let (title, name) = (self.title.to_owned(), self.limit.name.clone());
        self.add(origin, title, name, buckets, condition, self.limit.is_shadow);
    }

    /// The buckets that one request may pay together.
    fn add_object(&mut self, paid: &[PaidBucket<'_>], makers: &[usize]) {
        let limit = self.limit;
        // Then the document has no room for its rules.
        if self.imported.more > 0 {
            return;
        }
        let mut all = RequestCondition::default();
        let (mut used, mut found) = (Vec::new(), Vec::new());
        for (bucket, maker) in paid.iter().zip(makers) {
            let PaidBucket { descriptor, actions, fit, condition } = bucket;
            let mut both = all.clone();
            let is_possible = both.and(condition).is_ok() && both.is_possible();
            let is_off = limit.is_shadow || descriptor.is_shadow || descriptor.size.most > MOST;
            if used.contains(maker) || !is_possible || is_off {
                continue;
            }
            all = both;
            used.push(*maker);
            let buckets = self.buckets(descriptor.size, fit.sources.clone(), actions.cost);
            found.push((buckets, descriptor.origin.clone(), !condition.is_always()));
        }
        found.sort_by_key(|(buckets, ..)| buckets.rate());
        if let (Some((size, origin)), true) = (&limit.default, limit.is_default_always)
            && size.most < MOST
            && !limit.is_shadow
        {
            found.push((self.buckets(*size, Vec::new(), 1), origin.clone(), false));
        }
        let mut sources = found.iter().flat_map(|(buckets, ..)| &buckets.sources);
        if found.len() < 2 || found.len() > MOST_IN_OBJECT || !sources.all(KeySource::is_comparable)
        {
            return;
        }
        let rules = found.iter().map(|(_, origin, _)| origin.clone()).collect();
        let buckets =
            found.into_iter().enumerate().map(|(number, (mut buckets, _, is_partial))| {
                buckets.part = is_partial.then(|| part_header(number));
                buckets
            });
        let model = Box::new(BucketsModel { buckets: buckets.collect() });
        let title = self.title.to_owned();
        self.imported.objects.push(ImportedObject { title, rules, model, unrounded: None });
    }

    fn buckets(&self, size: BucketSize, mut sources: Vec<KeySource>, cost: u64) -> Buckets {
        let most_keys = if sources.is_empty() { usize::MAX } else { self.limit.most_dynamic };
        if self.limit.is_per_connection {
            sources.push(KeySource::address());
        }
        Buckets::new(size, sources, cost, most_keys)
    }

    /// Adds the entry of a bucket.
    fn add(
        &mut self,
        origin: Origin,
        title: String,
        name: String,
        buckets: Buckets,
        condition: RequestCondition,
        is_shadow: bool,
    ) {
        let LocalRules { limit, group, imported, .. } = self;
        // Such a bucket is never empty.
        if buckets.size.most > MOST || imported.has_no_room() {
            return;
        }
        let keys = buckets
            .size
            .rule_keys(buckets.cost)
            .and_then(|rule| Ok((rule, condition.entry_keys("Envoy", &group.covered)?)));
        let (mut keys, (entry, remarks)) = match keys {
            Ok(keys) => keys,
            Err(why) => return imported.gaps.add(origin, title, why),
        };
        for remark in remarks {
            imported.gaps.add(origin.clone(), title.as_str(), remark);
        }
        if is_shadow {
            keys.push(("shadow", Tree::Bool(true)));
        }
        if limit.is_shared {
            keys.push(("scope", "global".into()));
        }
        let sources = &buckets.sources;
        let by = KeySource::counted_by(sources);
        let by = match buckets.most_keys {
            usize::MAX => by,
            most => format!("{by}, of which Envoy keeps {most}, and Diana `keys`"),
        };
        let process = if limit.is_shared {
            "all Envoys of the cluster, as here in all gateways"
        } else {
            "each Envoy process; here of this entry, in each gateway"
        };
        let rule = ImportedRule {
            origin: origin.clone(),
            name,
            actors: sources.iter().map(KeySource::actor).collect(),
            keys,
            status: limit.status,
            differences: RuleDifferences {
                refused: "do not count in this bucket, in both; Envoy has charged those that it checked before, Diana none".into(),
                belongs: format!("this configuration of the filter, in {process}; {by}"),
                keyless: match sources.as_slice() {
                    [] => "all requests share one count".into(),
                    sources if sources.iter().all(KeySource::is_always) => "every request has one".into(),
                    _ => "no descriptor, so not limited by this bucket, in both".into(),
                },
            },
            comparison: None,
            exempt: Vec::new(),
            is_partial: !condition.is_always(),
            processes: 1,
            model: BucketsModel::of(buckets),
            unrounded: None,
        };
        imported.entries.push(ImportedEntry { origin, title, keys: entry, rules: vec![rule] });
    }
}
