//! Lists of client addresses.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use super::mapping::Allowed;
use super::node::Node;

/// A list of client addresses.
pub const ADDRESSES: Allowed =
    Allowed::List("a list of addresses such as `[10.0.0.0/8, 192.0.2.1]`", &ADDRESS);
const ADDRESS: Allowed =
    Allowed::Text("an address such as 192.0.2.1, or a network such as 10.0.0.0/8", |text| {
        parse(text).is_some()
    });

/// Reads an address or a network.
pub fn read(node: &Node<'_>) -> Option<IpNet> {
    parse(node.fitting(&ADDRESS)?)
}

fn parse(text: &str) -> Option<IpNet> {
    let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    net.ok().map(canonical)
}

/// Converts a network of IPv4-mapped IPv6 addresses to an IPv4 network.
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
