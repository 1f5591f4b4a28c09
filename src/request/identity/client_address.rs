//! The client's address, cut to a network: `{client_address: {v4: 32, v6: 64}}`.
//!
//! An IPv6 customer holds at least a /64, so a single IPv6 address does not identify a caller.
//! Clients of a Unix domain socket or an internal listener have no address, and are one caller.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use super::{BuiltSource, Identifier, Mistake, Source, SourceKind, SourceValue, ValueForm};
use diana_policy::port::Request;
use diana_policy::spelling;
use diana_policy::tree::Tree;

/// `client_address` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "client_address", form: ValueForm::Any, options: &[], build };

/// Hashed in place of an address that the host does not know: no address is that short.
pub(super) const UNKNOWN: &[u8] = b"";

/// Prefix lengths of the two families.
#[derive(Debug)]
struct Network {
    v4: u8,
    v6: u8,
}

fn build(value: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let mut network = Network { v4: 32, v6: 64 };
    let mut mistakes = Vec::new();
    let pairs: &[(String, Tree)] = match value {
        Tree::Null => &[],
        Tree::Map(pairs) => pairs,
        other => {
            let message =
                format!("found {}, allowed: `{{v4: 32, v6: 64}}` or `{{}}`", other.found());
            return Err(vec![Mistake { key: "client_address".into(), message }]);
        }
    };
    for (key, length) in pairs {
        let (longest, field) = match key.as_str() {
            "v4" => (32, &mut network.v4),
            "v6" => (128, &mut network.v6),
            _ => {
                let message = "unknown key, allowed: v4, v6".into();
                mistakes.push(Mistake { key: format!("client_address.{key}"), message });
                continue;
            }
        };
        match length {
            Tree::Int(length) if (0..=longest).contains(length) => *field = *length as u8,
            other => {
                let message = format!("found {}, allowed: 0 … {longest}", other.found());
                mistakes.push(Mistake { key: format!("client_address.{key}"), message });
            }
        }
    }
    if mistakes.is_empty() { Ok(Rc::new(network)) } else { Err(mistakes) }
}

impl Source for Network {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        match request.client() {
            None => SourceValue::NoAddress,
            Some(IpAddr::V4(address)) => SourceValue::Value(Identifier::V4(self.v4(address))),
            Some(IpAddr::V6(address)) => SourceValue::Value(Identifier::V6(self.v6(address))),
        }
    }

    fn spelled(&self, text: &[u8]) -> Option<Vec<u8>> {
        if text.is_empty() {
            return Some(UNKNOWN.to_vec());
        }
        Some(match spelling::address(text)? {
            IpAddr::V4(address) => self.v4(address).into(),
            IpAddr::V6(address) => self.v6(address).into(),
        })
    }

    fn is_caller_chosen(&self) -> bool {
        false
    }
}

impl Network {
    fn v4(&self, address: Ipv4Addr) -> [u8; 4] {
        let kept = u32::MAX.checked_shl(32 - u32::from(self.v4)).unwrap_or(0);
        (address.to_bits() & kept).to_be_bytes()
    }

    fn v6(&self, address: Ipv6Addr) -> [u8; 16] {
        let kept = u128::MAX.checked_shl(128 - u32::from(self.v6)).unwrap_or(0);
        (address.to_bits() & kept).to_be_bytes()
    }
}
