//! HTTPRoutes and GRPCRoutes of the Gateway API.

use std::collections::BTreeMap;

use crate::manifest::ManifestNode;

/// The kinds of routes.
const ROUTES: [&str; 2] = ["HTTPRoute", "GRPCRoute"];

/// Routes, by their kinds, namespaces and names.
#[derive(Debug, Default)]
pub(crate) struct GatewayRoutes {
    list: BTreeMap<String, GatewayRoute>,
}

/// A route.
#[derive(Debug, Default)]
pub(crate) struct GatewayRoute {
    /// The Gateways that it belongs to.
    parents: Vec<String>,
    pub(crate) hosts: usize,
    /// The name of each rule, and the number of its matches.
    pub(crate) rules: Vec<(Option<String>, usize)>,
}

/// The key of a route: its kind in lower case, its namespace and its name.
pub(crate) fn route_key(kind: &str, name: &str) -> String {
    format!("{}/{name}", kind.to_ascii_lowercase())
}

/// The text of a key, or this one.
pub(crate) fn text_or(node: &ManifestNode<'_>, path: &str, default: &str) -> String {
    let text = node.descend(path).and_then(|it| it.tree().text());
    text.unwrap_or(default).to_owned()
}

impl GatewayRoutes {
    /// Reads an object, if it is a route.
    pub(crate) fn read(&mut self, root: &ManifestNode<'_>) {
        let Some(kind) = root.text_of("kind").filter(|kind| ROUTES.contains(kind)) else { return };
        let namespace = text_or(root, "metadata.namespace", "default");
        let name = format!("{namespace}/{}", text_or(root, "metadata.name", "unnamed"));
        let items = |path: &str| root.descend(path).map(|it| it.items()).unwrap_or_default();
        let parent = |parent: &ManifestNode<'_>| {
            let namespace = text_or(parent, "namespace", &namespace);
            format!("{namespace}/{}", text_or(parent, "name", ""))
        };
        let rule = |rule: &ManifestNode<'_>| {
            let matches = rule.get("matches").map_or(0, |it| it.items().len());
            (rule.text_of("name").map(str::to_owned), matches)
        };
        let route = GatewayRoute {
            parents: items("spec.parentRefs").iter().map(parent).collect(),
            hosts: items("spec.hostnames").len(),
            rules: items("spec.rules").iter().map(rule).collect(),
        };
        self.list.insert(route_key(kind, &name), route);
    }

    /// The route of a kind with a namespace and a name.
    pub(crate) fn find(&self, kind: &str, name: &str) -> Option<&GatewayRoute> {
        self.list.get(&route_key(kind, name))
    }

    /// The routes of a Gateway, by their keys.
    pub(crate) fn of_gateway(&self, name: &str) -> impl Iterator<Item = (&String, &GatewayRoute)> {
        self.list.iter().filter(move |(_, it)| it.parents.iter().any(|own| own == name))
    }
}
