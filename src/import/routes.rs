//! The hosts and paths of servers, and the limits that apply to each.

use std::collections::{BTreeMap, BTreeSet};

use diana_policy::tree::Tree;
use diana_policy::{HostPattern, Prefix};

use crate::outcome::Notes;
use crate::paths;
use crate::source::Origin;

/// A path of a host.
#[derive(Debug, Clone)]
pub(crate) struct HostPath {
    /// In lower case. Empty for all hosts without paths of their own.
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) kind: PathKind,
    pub(crate) origin: Origin,
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathKind {
    Exact,
    /// Whole segments.
    Prefix,
    /// The beginning of a path, as nginx compares it.
    Text,
    /// A regular expression.
    Regex,
}

/// The requests that an entry covers.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    pub(crate) paths: Vec<String>,
    pub(crate) ignore_case: bool,
    /// None stands for all.
    pub(crate) hosts: Vec<String>,
    /// The names of routes. None stands for all.
    pub(crate) routes: Vec<String>,
    /// Hosts among those that have paths of their own.
    pub(crate) other_hosts: Vec<String>,
    /// Paths below those to which its limits do not apply.
    pub(crate) other_paths: Vec<String>,
}

impl Covered {
    /// `Url`, and `ignore_case` where nginx ignores it.
    pub(crate) fn url_keys(&self) -> Vec<(&'static str, Tree)> {
        let url = match self.paths.as_slice() {
            [path] => Tree::Text(path.clone()),
            paths => texts(paths),
        };
        let ignore_case = self.ignore_case.then_some(("ignore_case", Tree::Bool(true)));
        [("Url", url)].into_iter().chain(ignore_case).collect()
    }

    /// The condition on the host, if there is one.
    pub(crate) fn host_pair(&self) -> Option<(String, Tree)> {
        (!self.hosts.is_empty()).then(|| ("hosts".into(), texts(&self.hosts)))
    }

    /// The condition on the route, if there is one.
    pub(crate) fn route_pair(&self) -> Option<(String, Tree)> {
        (!self.routes.is_empty()).then(|| ("route".into(), texts(&self.routes)))
    }

    /// The hosts to exclude, if there are any.
    pub(crate) fn other_host_pair(&self) -> Option<(String, Tree)> {
        (!self.other_hosts.is_empty()).then(|| ("hosts".into(), texts(&self.other_hosts)))
    }

    /// `except`, with addresses.
    pub(crate) fn except(&self, addresses: &[String]) -> Option<(&'static str, Tree)> {
        let lists = [("addresses", addresses), ("paths", self.other_paths.as_slice())];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let pairs: Vec<_> = lists.map(|(key, list)| (key.to_owned(), texts(list))).collect();
        (!pairs.is_empty()).then_some(("except", Tree::Map(pairs)))
    }
}

fn texts(list: &[String]) -> Tree {
    Tree::List(list.iter().cloned().map(Tree::Text).collect())
}

/// The paths of a host, each with the numbers of its owners.
type OwnedPaths = BTreeMap<(String, PathKind), Vec<usize>>;

/// An owner of paths: an Ingress, or a limit of a zone.
#[derive(Debug)]
pub(crate) struct PathOwner {
    /// Its name for readers.
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// Its own paths.
    paths: Vec<HostPath>,
}

/// All hosts.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The name of the program.
    original: &'static str,
    owners: Vec<PathOwner>,
    hosts: BTreeMap<String, OwnedPaths>,
}

impl Routes {
    /// No routes of a program.
    pub(crate) fn new(original: &'static str) -> Routes {
        Routes { original, owners: Vec::new(), hosts: BTreeMap::new() }
    }

    /// Adds an owner, and returns its number.
    pub(crate) fn add_owner(&mut self, name: String, origin: Origin) -> usize {
        self.owners.push(PathOwner { name, origin, paths: Vec::new() });
        self.owners.len() - 1
    }

    /// The owners of a path, if it is known.
    pub(crate) fn owners_of(&self, path: &HostPath) -> Option<&[usize]> {
        let owners = self.hosts.get(&path.host)?.get(&(path.path.clone(), path.kind))?;
        Some(owners)
    }

    /// The owners of each place with several of them.
    pub(crate) fn shared(&self) -> BTreeSet<&[usize]> {
        let places = self.hosts.values().flat_map(BTreeMap::values).map(Vec::as_slice);
        places.filter(|owners| owners.len() > 1).collect()
    }

    /// Adds a path with its owners, which may be none.
    pub(crate) fn add(&mut self, path: HostPath, owners: &[usize]) {
        let known = self.hosts.entry(path.host.clone()).or_default();
        known.insert((path.path.clone(), path.kind), owners.to_vec());
        for number in owners {
            if let Some(owner) = self.owners.get_mut(*number) {
                owner.paths.push(path.clone());
            }
        }
    }

    /// The requests of an owner. `None` if it has none. Adds remarks about those that no entry
    /// expresses.
    pub(crate) fn of(&self, number: usize, gaps: &mut Notes) -> Option<Covered> {
        let PathOwner { origin, paths: own, .. } = self.owners.get(number)?;
        let mut by_host: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        // The remark about each path, and the path of the entry for it.
        let mut remarks: BTreeMap<(&str, PathKind), (String, String)> = BTreeMap::new();
        let mut is_regex = true;
        for HostPath { host, path, kind, .. } in own {
            if !host.is_empty() && HostPattern::parse(host).is_err() {
                continue;
            }
            is_regex &= *kind == PathKind::Regex;
            let (covered, mut remark) = covered_path(self.original, path, *kind);
            match Prefix::parse(&covered, false) {
                Ok(_) => _ = by_host.entry(host).or_default().insert(covered.clone()),
                Err(why) => remark = Some(why),
            }
            if let Some(remark) = remark {
                remarks.insert((path, *kind), (covered, remark));
            }
        }
        for paths in by_host.values_mut() {
            paths::keep_shortest(paths);
        }
        let mut all: BTreeSet<String> = by_host.values().flatten().cloned().collect();
        paths::keep_shortest(&mut all);
        for HostPath { host, path, kind, origin } in own {
            if let Err(why) = HostPattern::parse(host)
                && !host.is_empty()
            {
                gaps.add(origin.clone(), format!("the host {host}"), why);
            } else if let Some((covered, remark)) = remarks.remove(&(path.as_str(), *kind))
                && all
                    .iter()
                    .all(|shorter| *shorter == covered || !paths::covers(shorter, &covered))
            {
                gaps.add(origin.clone(), format!("the path {path}"), remark);
            }
        }
        self.note_cross_product(origin, &by_host, &all, gaps);
        let hosts: BTreeSet<&str> = by_host.keys().copied().collect();
        let other_hosts = self.other_hosts(&hosts);
        let other_paths = self.other_paths(number, &hosts, &all, gaps);
        let is_all = hosts.contains("");
        let hosts = hosts.into_iter().filter(|_| !is_all).map(str::to_owned).collect();
        let paths: Vec<String> = all.into_iter().collect();
        let is_any = !paths.is_empty();
        is_any.then_some(Covered {
            paths,
            ignore_case: is_regex,
            hosts,
            routes: Vec::new(),
            other_hosts,
            other_paths,
        })
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
                let about = match *host {
                    "" => "the paths of all other hosts".to_owned(),
                    host => format!("the paths of the host {host}"),
                };
                let reason = format!(
                    "the entry covers each of its paths on each of its hosts, and so {} here, too",
                    more.join(", ")
                );
                gaps.add(origin.clone(), about, reason);
            }
        }
    }

    /// Hosts with paths of their own that the patterns of an owner include.
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

    /// Paths below those of an owner to which its limits do not apply.
    fn other_paths(
        &self,
        number: usize,
        hosts: &BTreeSet<&str>,
        all: &BTreeSet<String>,
        gaps: &mut Notes,
    ) -> Vec<String> {
        // The number of hosts on which each path is another's.
        let mut others: BTreeMap<&str, usize> = BTreeMap::new();
        let mut inexact: Vec<String> = Vec::new();
        for host in hosts {
            let Some(known) = self.hosts.get(*host) else { continue };
            for own in all {
                let from = (own.clone(), PathKind::Exact);
                for ((path, kind), owners) in known.range(from..) {
                    if !path.starts_with(own.as_str()) {
                        break;
                    }
                    let plain = paths::bare(path);
                    if owners.contains(&number) || !paths::covers(own, plain) {
                        continue;
                    }
                    let hides_own = all.iter().any(|own| paths::covers(plain, own));
                    let is_inexact = matches!(kind, PathKind::Exact | PathKind::Regex);
                    if is_inexact || hides_own {
                        inexact.extend((plain != own).then(|| format!("{host}{path}")));
                    } else {
                        *others.entry(plain).or_insert(0) += 1;
                    }
                }
            }
        }
        let mut exempt = Vec::new();
        for (path, count) in others {
            match Prefix::parse(path, false) {
                Ok(_) if count >= hosts.len() => exempt.push(path.to_owned()),
                _ => inexact.push(format!("{path} on some of its hosts")),
            }
        }
        if let (Some(owner), false) = (self.owners.get(number), inexact.is_empty()) {
            let more = inexact.len().saturating_sub(5);
            inexact.truncate(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let about = format!("{}{more}", inexact.join(", "));
            let reason = format!(
                "{} does not count these requests under {}; the entry does",
                self.original, owner.name
            );
            gaps.add(owner.origin.clone(), about, reason);
        }
        exempt
    }
}

/// The path of an entry for a path, and how they differ.
pub(crate) fn covered_path(original: &str, text: &str, kind: PathKind) -> (String, Option<String>) {
    let plain = paths::bare(text).to_owned();
    if kind == PathKind::Regex {
        let (prefix, is_whole) = paths::of_regex(text);
        let reason = format!("is a regular expression; the entry covers `{prefix}` and all below");
        return (prefix, (!is_whole).then_some(reason));
    }
    let reason = match kind {
        PathKind::Exact => Some(format!("is `Exact`; the entry covers all below `{plain}`, too")),
        PathKind::Text if text != "/" && text.ends_with('/') => Some(format!(
            "covers only what is below it in {original}; the entry covers `{plain}`, too"
        )),
        PathKind::Text if text != "/" => {
            Some(format!("covers `{text}x` in {original}, too; the entry covers whole segments"))
        }
        _ => None,
    };
    (plain, reason)
}
