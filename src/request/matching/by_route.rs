//! Entries that require routes, by the names of those.

use std::hash::{BuildHasher, Hasher};

use diana_policy::port::Request;
use diana_policy::{Match, RouteNames};
use hashbrown::{DefaultHashBuilder, HashTable};

/// The number of entries from which a look-up by the route is worth it. Fewer are compared one by one,
/// where a cheaper condition may make the route needless.
pub const MANY: usize = 8;

/// Entries at one path, in groups by the routes that they require.
#[derive(Default)]
pub struct ByRoute {
    /// By the heads of those routes, in ascending order. An entry for several is in several groups.
    groups: HashTable<(Box<[u8]>, Vec<usize>)>,
    hashes: DefaultHashBuilder,
}

impl ByRoute {
    /// Adds an entry that requires one of these routes. Entries are added in ascending order.
    pub fn insert(&mut self, routes: &[&RouteNames], entry: usize) {
        let names = routes.iter().flat_map(|routes| routes.exact.iter().chain(&routes.prefixes));
        for name in names {
            let (head, hashes) = (head(name.as_bytes()), &self.hashes);
            let group = self.groups.entry(
                hash(hashes, head),
                |it| *it.0 == *head,
                |it| hash(hashes, &it.0),
            );
            let (_, group) = group.or_insert_with(|| (head.into(), Vec::new())).into_mut();
            if group.last() != Some(&entry) {
                group.push(entry);
            }
        }
    }

    /// Calls `take` with the entries that may apply to a request on its route. Without a request, with
    /// all, some of them several times.
    #[inline(never)]
    pub fn each(&self, request: Option<&dyn Request>, take: &mut impl FnMut(usize)) {
        let Some(request) = request else {
            return self.groups.iter().flat_map(|(_, group)| group).for_each(|entry| take(*entry));
        };
        let Some(route) = request.route() else { return };
        let head = head(&route);
        if let Some((_, group)) = self.groups.find(hash(&self.hashes, head), |it| *it.0 == *head) {
            group.iter().for_each(|entry| take(*entry));
        }
    }
}

/// The hash of bytes alone: that of a slice has its length, too, which would cost 60 instructions in wasm.
fn hash(hashes: &DefaultHashBuilder, head: &[u8]) -> u64 {
    let mut hasher = hashes.build_hasher();
    hasher.write(head);
    hasher.finish()
}

/// The routes that an entry requires. `None` if it may apply to others, or if a prefix is too short for
/// a group.
pub fn required(entry: &Match) -> Option<Vec<&RouteNames>> {
    let is_whole = |prefix: &String| resource(prefix.as_bytes()).is_some();
    let is_findable =
        |routes: &&RouteNames| !routes.is_empty() && routes.prefixes.iter().all(is_whole);
    let routes: Vec<&RouteNames> = entry.any.iter().map(|block| &block.routes).collect();
    (!routes.is_empty() && routes.iter().all(is_findable)).then_some(routes)
}

/// The length of `httproute/` and `grpcroute/`, with which Envoy Gateway begins the names of routes.
const KIND: usize = 10;

/// The part of a name that all routes of one HTTPRoute have: `httproute/<namespace>/<name>/`. Of other
/// names, all of it.
fn head(name: &[u8]) -> &[u8] {
    resource(name).unwrap_or(name)
}

fn resource(name: &[u8]) -> Option<&[u8]> {
    let (kind, mut rest) = name.split_at_checked(KIND)?;
    if kind.last() != Some(&b'/') {
        return None;
    }
    for _ in ["namespace", "name"] {
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        rest = rest.get(slash + 1..)?;
    }
    name.get(..name.len() - rest.len())
}
