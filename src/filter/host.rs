//! The request in hand, and the secret that all workers share.

use std::borrow::Cow;

use super::{abi, pairs};
use crate::key::Seed;
use crate::port::{HeaderName, Property, Pseudo, Request, Values};

/// The request of the stream that the host is calling about.
pub(super) struct HostRequest;

impl Request for HostRequest {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let name = match which {
            Pseudo::Path => ":path",
            Pseudo::Method => ":method",
            Pseudo::Authority => ":authority",
        };
        abi::header(abi::REQUEST_HEADERS, name).map(Cow::Owned)
    }

    /// The host's look-up by name returns only the first of several values; its property has all
    /// of them with commas between. So only a value with a comma is looked at more closely.
    fn header(&self, name: &HeaderName) -> Values<'_> {
        match abi::property(name.property().encoded()) {
            None => Values::None,
            Some(value) if !value.contains(&b',') => Values::One(Cow::Owned(value)),
            Some(_) => all_values(name.as_str()),
        }
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        abi::property(property.encoded()).map(Cow::Owned)
    }
}

#[cold]
fn all_values(name: &str) -> Values<'static> {
    let map = abi::headers(abi::REQUEST_HEADERS).unwrap_or_default();
    // Should the host not hand out the map, nobody can tell which value is the caller's own.
    let mut values = pairs::values(&map, name).unwrap_or_default();
    match values.pop() {
        Some(value) if values.is_empty() => Values::One(Cow::Owned(value)),
        Some(value) => {
            values.push(value);
            Values::Many(values)
        }
        None => Values::Many(Vec::new()),
    }
}

/// A CAS number that no value ever has: written with it, a value is only ever inserted.
const INSERT: u32 = u32::MAX;

/// The secret that callers are hashed with, the same in all workers of this gateway: whoever
/// comes first draws it and leaves it in shared data.
pub(super) fn seed(namespace: &str) -> Seed {
    let key = format!("diana/1/{namespace}/seed");
    let drawn = abi::random().unwrap_or_default();
    let agreed = match abi::shared_data(&key).and_then(|bytes| bytes.try_into().ok()) {
        Some(agreed) => agreed,
        None if abi::set_shared_data(&key, &drawn, INSERT) => drawn,
        None => abi::shared_data(&key).and_then(|bytes| bytes.try_into().ok()).unwrap_or(drawn),
    };
    let halves = u128::from_le_bytes(agreed);
    Seed { k0: halves as u64, k1: (halves >> 64) as u64 }
}
