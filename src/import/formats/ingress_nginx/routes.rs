//! The hosts and paths of Ingress objects: which requests belong to each.

use std::collections::{BTreeMap, BTreeSet};

use diana_policy::{HostPattern, Prefix};

use super::Ingress;
use super::annotations::IngressLimits;
use crate::manifest::ManifestNode;
use crate::nginx::paths;
use crate::outcome::Notes;
use crate::source::Origin;

/// A path of an Ingress.
#[derive(Debug, Clone)]
pub(super) struct IngressPath {
    host: String,
    path: String,
    kind: PathKind,
    origin: Origin,
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathKind {
    Exact,
    /// Whole segments.
    Prefix,
    /// The beginning of a path, as nginx compares it.
    Text,
}

/// The paths of an Ingress. One without rules has all requests that no host of others has.
pub(super) fn read(root: &ManifestNode<'_>) -> Vec<IngressPath> {
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
            found.push(IngressPath { host: host.clone(), path: text, kind, origin: path.origin() });
        }
    }
    let backend = root.descend("spec.defaultBackend").or_else(|| root.descend("spec.backend"));
    if let (true, Some(backend)) = (found.is_empty(), backend) {
        let (host, path) = (String::new(), "/".into());
        found.push(IngressPath { host, path, kind: PathKind::Prefix, origin: backend.origin() });
    }
    found
}

/// The requests that an entry covers.
#[derive(Debug, Default)]
pub(super) struct Covered {
    pub(super) paths: Vec<String>,
    pub(super) ignore_case: bool,
    /// None stands for all.
    pub(super) hosts: Vec<String>,
    /// Hosts among those that belong to other Ingresses.
    pub(super) other_hosts: Vec<String>,
    /// Paths below those that belong to other Ingresses.
    pub(super) other_paths: Vec<String>,
}

/// The paths of a host, each with the number of its Ingress.
type HostPaths = BTreeMap<(String, PathKind), usize>;

/// All hosts.
pub(super) struct Routes<'i> {
    ingresses: &'i [Ingress],
    hosts: BTreeMap<String, HostPaths>,
    /// Hosts on which all paths are regular expressions.
    regex: BTreeSet<String>,
    /// The hosts of each Ingress with its own paths.
    own: Vec<BTreeMap<String, Vec<IngressPath>>>,
}

impl<'i> Routes<'i> {
    /// The hosts of Ingresses, the oldest first.
    pub(super) fn new(
        ingresses: &'i [Ingress],
        limits: &[IngressLimits],
        gaps: &mut Notes,
    ) -> Routes<'i> {
        let (mut hosts, mut regex, mut own) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for (number, (ingress, limit)) in ingresses.iter().zip(limits).enumerate() {
            let mut mine: BTreeMap<String, Vec<IngressPath>> = BTreeMap::new();
            let aliased = limit.aliases.iter().flat_map(|alias| {
                let other =
                    |path: &IngressPath| IngressPath { host: alias.clone(), ..path.clone() };
                ingress.paths.iter().map(other)
            });
            for path in ingress.paths.iter().cloned().chain(aliased) {
                // A canary serves a part of the requests of another Ingress.
                if limit.is_canary {
                    continue;
                }
                if limit.is_regex {
                    regex.insert(path.host.clone());
                }
                let known: &mut HostPaths = hosts.entry(path.host.clone()).or_default();
                let owner = *known.entry((path.path.clone(), path.kind)).or_insert(number);
                if owner == number {
                    mine.entry(path.host.clone()).or_default().push(path);
                    continue;
                }
                let has_limits =
                    |number: usize| limits.get(number).is_some_and(|it| !it.is_empty());
                if let (true, Some(other)) =
                    (has_limits(number) || has_limits(owner), ingresses.get(owner))
                {
                    let about = format!("{}{} of {}", path.host, path.path, ingress.name);
                    gaps.add(path.origin, about, lost(ingress, other));
                }
            }
            own.push(mine);
        }
        Routes { ingresses, hosts, regex, own }
    }

    /// The requests of an Ingress. `None` if it has none. Adds remarks about those that no entry expresses.
    pub(super) fn of(&self, number: usize, gaps: &mut Notes) -> Option<Covered> {
        let own = self.own.get(number)?;
        let mut by_host: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut noted = BTreeSet::new();
        for (host, list) in own {
            if !host.is_empty()
                && let Err(why) = HostPattern::parse(host)
            {
                if let Some(path) = list.first() {
                    gaps.add(path.origin.clone(), format!("the host {host}"), why);
                }
                continue;
            }
            for path in list {
                let is_regex = self.regex.contains(host);
                let (covered, remark) = covered(path, is_regex);
                if let Some(remark) = remark
                    && noted.insert((path.path.clone(), path.kind))
                {
                    let about = format!("the path {}", path.path);
                    gaps.add(path.origin.clone(), about, remark);
                }
                match Prefix::parse(&covered, false) {
                    Ok(_) => _ = by_host.entry(host).or_default().insert(covered),
                    Err(why) => {
                        gaps.add(path.origin.clone(), format!("the path {}", path.path), why);
                    }
                }
            }
        }
        for paths in by_host.values_mut() {
            paths::keep_shortest(paths);
        }
        let mut all: BTreeSet<String> = by_host.values().flatten().cloned().collect();
        paths::keep_shortest(&mut all);
        let origin = &self.ingresses.get(number)?.origin;
        self.note_cross_product(origin, &by_host, &all, gaps);
        let hosts: BTreeSet<&str> = by_host.keys().copied().collect();
        let ignore_case = hosts.iter().all(|host| self.regex.contains(*host));
        let other_hosts = self.other_hosts(&hosts);
        let other_paths = self.other_paths(number, &hosts, &all, gaps);
        let is_all = hosts.contains("");
        let hosts = hosts.into_iter().filter(|_| !is_all).map(str::to_owned).collect();
        let paths: Vec<String> = all.into_iter().collect();
        let is_any = !paths.is_empty();
        is_any.then_some(Covered { paths, ignore_case, hosts, other_hosts, other_paths })
    }

    /// An entry covers each of its paths on each of its hosts.
    fn note_cross_product(
        &self,
        origin: &Origin,
        by_host: &BTreeMap<&str, BTreeSet<String>>,
        all: &BTreeSet<String>,
        gaps: &mut Notes,
    ) {
        for (host, paths) in by_host {
            let is_more = |path: &&String| !paths.iter().any(|own| paths::covers(own, path));
            let more: Vec<&str> = all.iter().filter(is_more).map(String::as_str).take(5).collect();
            if !more.is_empty() {
                let about = format!("the paths of the host {host}");
                let reason = format!(
                    "the entry covers each of its paths on each of its hosts, and so {} here, too",
                    more.join(", ")
                );
                gaps.add(origin.clone(), about, reason);
            }
        }
    }

    /// Hosts of other Ingresses that the patterns of this one include.
    fn other_hosts(&self, hosts: &BTreeSet<&str>) -> Vec<String> {
        let includes = |pattern: &str, host: &str| match pattern.strip_prefix('*') {
            _ if pattern.is_empty() => true,
            Some(end) => host.len() > end.len() && host.ends_with(end) && host != pattern,
            None => false,
        };
        if !hosts.iter().any(|host| host.is_empty() || host.starts_with('*')) {
            return Vec::new();
        }
        let is_other = |host: &&String| {
            !hosts.contains(host.as_str())
                && !host.is_empty()
                && hosts.iter().any(|own| includes(own, host))
                && HostPattern::parse(host).is_ok()
        };
        self.hosts.keys().filter(is_other).cloned().collect()
    }

    /// Paths of other Ingresses below those of this one, which nginx counts there only.
    fn other_paths(
        &self,
        number: usize,
        hosts: &BTreeSet<&str>,
        all: &BTreeSet<String>,
        gaps: &mut Notes,
    ) -> Vec<String> {
        // On how many of the hosts each path is another's, and that one.
        let mut others: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut inexact: Vec<(&str, &str, usize)> = Vec::new();
        for host in hosts {
            let Some(known) = self.hosts.get(*host) else { continue };
            for own in all {
                let from = (own.clone(), PathKind::Exact);
                for ((path, kind), owner) in known.range(from..) {
                    if !path.starts_with(own.as_str()) {
                        break;
                    }
                    let plain = paths::bare(path);
                    if *owner == number || !paths::covers(own, plain) {
                        continue;
                    }
                    let hides_own = all.iter().any(|own| paths::covers(plain, own));
                    if *kind == PathKind::Exact || self.regex.contains(*host) || hides_own {
                        if plain != own {
                            inexact.push((host, path, *owner));
                        }
                        continue;
                    }
                    let count = others.entry(plain).or_insert((0, *owner));
                    count.0 += 1;
                }
            }
        }
        let mut exempt = Vec::new();
        for (path, (count, owner)) in others {
            match Prefix::parse(path, false) {
                Ok(_) if count >= hosts.len() => exempt.push(path.to_owned()),
                _ => inexact.push(("some of its hosts: ", path, owner)),
            }
        }
        let more = inexact.len().saturating_sub(5);
        for (host, path, owner) in inexact.into_iter().take(5) {
            let names = (self.ingresses.get(number), self.ingresses.get(owner));
            if let (Some(own), Some(other)) = names {
                let about = format!("{host}{path}");
                let more =
                    if more > 0 { format!("; so do {more} further paths") } else { String::new() };
                let reason = format!(
                    "belongs to the Ingress {}; the entry of {} counts these requests, too{more}",
                    other.name, own.name
                );
                gaps.add(own.origin.clone(), about, reason);
            }
        }
        exempt
    }
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

/// The path of an entry for a path of an Ingress, and how they differ.
fn covered(path: &IngressPath, is_regex: bool) -> (String, Option<String>) {
    let text = path.path.as_str();
    let plain = paths::bare(text).to_owned();
    if is_regex {
        let (prefix, is_whole) = paths::of_regex(text);
        let reason = format!("is a regular expression; the entry covers `{prefix}` and all below");
        return (prefix, (!is_whole).then_some(reason));
    }
    let reason = match path.kind {
        PathKind::Exact => Some(format!("is `Exact`; the entry covers all below `{plain}`, too")),
        PathKind::Text if text != "/" && text.ends_with('/') => {
            Some(format!("covers only what is below it in nginx; the entry covers `{plain}`, too"))
        }
        PathKind::Text if text != "/" => Some(format!(
            "is `ImplementationSpecific`, by which nginx covers `{text}x`, too; the entry covers whole segments"
        )),
        _ => None,
    };
    (plain, reason)
}
