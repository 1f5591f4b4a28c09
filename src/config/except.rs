//! `except`: requests that are not judged.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use super::fields::Fields;
use super::matching;
use super::node::Node;
use diana_core::policy::{Except, Prefix};

const WHAT: &str = "a mapping such as `{addresses: [10.0.0.0/8], paths: [/healthz]}`";
/// Its keys.
pub const KEYS: &[&str] = &["addresses", "paths", "headers"];
const ADDRESSES: &str = "a list of addresses such as `[10.0.0.0/8, 192.0.2.1]`";
const ADDRESS: &str = "an address such as 192.0.2.1, or a network such as 10.0.0.0/8";
const PATHS: &str = "a list of paths such as `[/healthz]`";

/// Reads `except` of the document, of an entry or of a rule.
pub fn read(outer: &Fields<'_>, ignore_case: bool) -> Except {
    let fields = outer.get("except").and_then(|node| Fields::read(node, WHAT, KEYS));
    let Some(fields) = fields else { return Except::default() };
    let items = |key: &str, allowed: &str| {
        fields.get(key).and_then(|node| node.list(allowed)).unwrap_or_default()
    };
    Except {
        addresses: items("addresses", ADDRESSES).iter().filter_map(address).collect(),
        paths: items("paths", PATHS).iter().filter_map(|node| path(node, ignore_case)).collect(),
        headers: fields.get("headers").map(matching::conditions).unwrap_or_default(),
    }
}

fn address(node: &Node<'_>) -> Option<IpNet> {
    let text = node.text(ADDRESS)?;
    let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    if net.is_err() {
        node.reject(ADDRESS);
    }
    net.ok().map(canonical)
}

/// A network of IPv4-mapped IPv6 addresses as the IPv4 network that it is.
fn canonical(net: IpNet) -> IpNet {
    let mapped = match net.addr() {
        IpAddr::V6(address) => address.to_ipv4_mapped(),
        IpAddr::V4(_) => None,
    };
    let short = net.prefix_len().checked_sub(96);
    match mapped.zip(short).map(|(address, length)| Ipv4Net::new(address, length)) {
        Some(Ok(net)) => IpNet::V4(net.trunc()),
        _ => net.trunc(),
    }
}

fn path(node: &Node<'_>, ignore_case: bool) -> Option<Prefix> {
    let text = node.text("a path such as `/healthz`")?;
    Prefix::parse(text, ignore_case)
        .map_err(|why| node.problem(format!("{} {why}", node.tree().found())))
        .ok()
}
