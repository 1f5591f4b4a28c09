//! `except`: requests that are exempt.

use super::addresses;
use super::conditions;
use super::fields::Fields;
use super::matching;
use super::node::Node;
use super::values;
use diana_policy::Except;

/// Reads `except` of the document, of an entry or of a rule.
pub fn read(outer: &Fields<'_>, ignore_case: bool) -> Except {
    let Some(fields) = outer.mapping("except") else { return Except::default() };
    let path = |node: &Node<'_>| values::path(node, &"a path such as `/healthz`", ignore_case);
    let items = |key| fields.list(key).unwrap_or_default();
    Except {
        addresses: items("addresses").iter().filter_map(addresses::read).collect(),
        paths: items("paths").iter().filter_map(path).collect(),
        hosts: items("hosts").iter().filter_map(matching::host).collect(),
        headers: conditions::of_headers(fields.named("headers")),
    }
}
