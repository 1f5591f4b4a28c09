//! Properties of a stream, in the encoding of the wasm host: text as it is, a number or a flag in memory order, and a list as
//! a map whose values are empty.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use diana_policy::port::Property;

use crate::abi::{Attribute, Call};

/// A property. `None` if the stream has none, or this host cannot read it.
pub(crate) fn read<'v>(call: &'v Call<'_>, property: &Property) -> Option<Cow<'v, [u8]>> {
    let mut path = property.encoded().split(|byte| *byte == 0);
    let segments = [path.next(), path.next(), path.next(), path.next(), path.next()];
    match segments {
        [Some(b"connection"), Some(b"uri_san_peer_certificate"), None, ..] => {
            text(call, Attribute::UriSanPeerCertificate)
        }
        [Some(b"connection"), Some(b"sha256_peer_certificate_digest"), None, ..] => {
            text(call, Attribute::Sha256PeerCertificate)
        }
        [Some(b"metadata"), Some(b"filter_metadata"), Some(namespace), Some(key), None] => {
            metadata(call, property, namespace, key)
        }
        [Some(b"filter_state"), Some(key), None, ..] => match call.filter_state(key) {
            Some(text) => Some(Cow::Borrowed(text)),
            None => call.typed_filter_state(key).map(Cow::Owned),
        },
        _ => None,
    }
}

fn text<'v>(call: &'v Call<'_>, attribute: Attribute) -> Option<Cow<'v, [u8]>> {
    call.text(attribute).filter(|text| !text.is_empty()).map(Cow::Borrowed)
}

/// A mapping in this encoding, which stands for every value that this host cannot read: callers with
/// such a value share their permits.
const UNREADABLE: &[u8] = b"\x01\0\0\0\x01\0\0\0\x01\0\0\0?\0?\0";

/// The type of a value of metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    List,
    /// A list with an item at this place that is a number.
    WithNumber(usize),
    /// A list with an item at this place that is true or false.
    WithFlag(usize),
}

thread_local! {
    /// The latest type of each value that this worker has read, by its path: Envoy logs an error for each getter of another type.
    static KINDS: RefCell<BTreeMap<Box<[u8]>, Kind>> = const { RefCell::new(BTreeMap::new()) };
}

fn metadata<'v>(
    call: &'v Call<'_>,
    property: &Property,
    namespace: &[u8],
    key: &[u8],
) -> Option<Cow<'v, [u8]>> {
    if !call.has_metadata(namespace, key) {
        return None;
    }
    let value = Value { call, namespace, key };
    let known = KINDS.with_borrow(|kinds| kinds.get(property.encoded()).copied());
    // The question for a list leaves no line.
    let all = [Kind::List, Kind::Text, Kind::Number, Kind::Flag];
    let others = all.into_iter().filter(|kind| Some(*kind) != known);
    let found = known.into_iter().chain(others).find_map(|kind| value.read_as(kind));
    let Some((kind, bytes)) = found else { return Some(Cow::Borrowed(UNREADABLE)) };
    if Some(kind) != known {
        KINDS.with_borrow_mut(|kinds| kinds.insert(property.encoded().into(), kind));
    }
    Some(bytes)
}

/// A value of metadata.
struct Value<'v, 'h, 'n> {
    call: &'v Call<'h>,
    namespace: &'n [u8],
    key: &'n [u8],
}

impl<'v> Value<'v, '_, '_> {
    /// The value and its exact type, if it has this type.
    fn read_as(&self, kind: Kind) -> Option<(Kind, Cow<'v, [u8]>)> {
        let Value { call, namespace, key } = *self;
        let bytes = match kind {
            Kind::Text => Cow::Borrowed(call.metadata_text(namespace, key)?),
            Kind::Number => Cow::Owned(call.metadata_number(namespace, key)?.to_le_bytes().into()),
            Kind::Flag => Cow::Owned(vec![u8::from(call.metadata_flag(namespace, key)?)]),
            Kind::List => return self.list(),
            Kind::WithNumber(place) | Kind::WithFlag(place) => {
                let is_there = call.list_size(namespace, key)? > place;
                (is_there && self.has_item(kind)).then_some(Cow::Borrowed(UNREADABLE))?
            }
        };
        Some((kind, bytes))
    }

    fn list(&self) -> Option<(Kind, Cow<'v, [u8]>)> {
        let Value { call, namespace, key } = *self;
        let size = call.list_size(namespace, key)?;
        let mut items = Vec::with_capacity(size);
        for place in 0..size {
            let Some(item) = call.list_text(namespace, key, place) else {
                let kinds = [Kind::WithNumber(place), Kind::WithFlag(place)];
                let kind = kinds.into_iter().find(|kind| self.has_item(*kind));
                return Some((kind.unwrap_or(Kind::List), Cow::Borrowed(UNREADABLE)));
            };
            items.push(item);
        }
        Some((Kind::List, Cow::Owned(encoded(&items))))
    }

    /// Returns true if the list has such an item. Its place must be below the size of the list.
    fn has_item(&self, kind: Kind) -> bool {
        match kind {
            Kind::WithNumber(place) => self.call.is_list_number(self.namespace, self.key, place),
            Kind::WithFlag(place) => self.call.is_list_flag(self.namespace, self.key, place),
            _ => false,
        }
    }
}

fn encoded(items: &[&[u8]]) -> Vec<u8> {
    let mut list = (items.len() as u32).to_le_bytes().to_vec();
    items.iter().for_each(|item| list.extend((item.len() as u64).to_le_bytes()));
    for item in items {
        list.extend_from_slice(item);
        list.extend([0, 0]);
    }
    list
}
