//! Entries that require routes, by the names of those.

use diana_policy::port::Request;
use diana_policy::{Match, RouteNames};
use hashbrown::HashMap;

/// The number of entries from which a look-up by the route is worth it. Fewer are compared one by one,
/// where a cheaper condition may make the route needless.
pub const MANY: usize = 8;

/// Entries at one path, in groups by the routes that they require.
#[derive(Default)]
pub struct ByRoute {
    /// By the heads of those routes, in ascending order. An entry for several is in several groups.
    groups: HashMap<Box<[u8]>, Vec<usize>>,
}

impl ByRoute {
    /// Adds an entry that requires one of these routes. Entries are added in ascending order.
    pub fn insert(&mut self, routes: &[&RouteNames], entry: usize) {
        let names = routes.iter().flat_map(|routes| routes.exact.iter().chain(&routes.prefixes));
        for name in names {
            let group = self.groups.entry(head(name.as_bytes()).into()).or_default();
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
            return self.groups.values().flatten().for_each(|entry| take(*entry));
        };
        let group = request.route().and_then(|route| self.groups.get(head(&route)));
        group.into_iter().flatten().for_each(|entry| take(*entry));
    }
}

/// The routes that an entry requires. `None` if it may apply to others, or if a prefix is too short for
/// a group.
pub fn required(entry: &Match) -> Option<Vec<&RouteNames>> {
    let is_whole = |prefix: &String| prefix.bytes().filter(|byte| *byte == b'/').count() >= SLASHES;
    let is_findable =
        |routes: &&RouteNames| !routes.is_empty() && routes.prefixes.iter().all(is_whole);
    let routes: Vec<&RouteNames> = entry.any.iter().map(|block| &block.routes).collect();
    (!routes.is_empty() && routes.iter().all(is_findable)).then_some(routes)
}

/// Envoy Gateway begins the names of all routes of one HTTPRoute with `httproute/<namespace>/<name>/`.
const SLASHES: usize = 3;

/// The name up to its third slash, or all of it. All names with a prefix of three slashes have its head.
fn head(name: &[u8]) -> &[u8] {
    let mut missing = SLASHES;
    for (end, byte) in (1..).zip(name) {
        missing -= usize::from(*byte == b'/');
        if missing == 0 {
            return name.get(..end).unwrap_or(name);
        }
    }
    name
}
