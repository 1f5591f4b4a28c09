//! Properties of a stream, in the encoding of the wasm host: text as it is, a number or a flag in memory order, and a list as
//! a map whose values are empty.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use diana_policy::port::Property;

use crate::abi::{StreamAttribute, StreamCall};

/// A property. `None` if the stream has none, or this host cannot read it.
pub(crate) fn read<'v>(call: &'v StreamCall<'_>, property: &Property) -> Option<Cow<'v, [u8]>> {
    let mut path = property.encoded().split(|byte| *byte == 0);
    let segments = [path.next(), path.next(), path.next(), path.next(), path.next()];
    match segments {
        [Some(b"connection"), Some(b"uri_san_peer_certificate"), None, ..] => {
            text(call, StreamAttribute::UriSanPeerCertificate)
        }
        [Some(b"connection"), Some(b"sha256_peer_certificate_digest"), None, ..] => {
            text(call, StreamAttribute::Sha256PeerCertificate)
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

fn text<'v>(call: &'v StreamCall<'_>, attribute: StreamAttribute) -> Option<Cow<'v, [u8]>> {
    call.text(attribute).filter(|text| !text.is_empty()).map(Cow::Borrowed)
}

/// A mapping in this encoding, which stands for every value that this host cannot read: callers with
/// such a value share their permits.
const UNREADABLE: &[u8] = b"\x01\0\0\0\x01\0\0\0\x01\0\0\0?\0?\0";

/// A type of values of metadata, and of items of lists, that has a getter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
}

/// The types of the values at a path, as far as a worker has read them. Envoy logs an error for each getter of another type, except that of lists.
#[derive(Clone, Copy, PartialEq, Eq)]
struct KnownTypes {
    /// The types, the latest one first.
    kinds: [Kind; 3],
    /// Where the latest list had an item that is no text, and the type of the item.
    odd: Option<(usize, Kind)>,
    /// The number of reads since a getter has known the value.
    unknown: u32,
}

thread_local! {
    /// By the path of the value.
    static SEEN: RefCell<BTreeMap<Box<[u8]>, KnownTypes>> = const { RefCell::new(BTreeMap::new()) };
}

impl Default for KnownTypes {
    fn default() -> KnownTypes {
        KnownTypes { kinds: [Kind::Text, Kind::Number, Kind::Flag], odd: None, unknown: 0 }
    }
}

impl KnownTypes {
    /// Counts a read. Returns false if no getter is asked, since none has known the value for long: it is a mapping or null.
    fn asks(&mut self) -> bool {
        const LONG: u32 = 256;
        self.unknown = self.unknown.wrapping_add(1);
        self.unknown <= LONG || self.unknown.is_multiple_of(LONG)
    }
}

fn metadata<'v>(
    call: &'v StreamCall<'_>,
    property: &Property,
    namespace: &[u8],
    key: &[u8],
) -> Option<Cow<'v, [u8]>> {
    if !call.has_metadata(namespace, key) {
        return None;
    }
    let known = SEEN.with_borrow(|all| all.get(property.encoded()).copied()).unwrap_or_default();
    let mut seen = known;
    let value = MetadataValue { call, namespace, key };
    let found = if seen.asks() { value.read(&mut seen) } else { None };
    if found.is_some() {
        seen.unknown = 0;
    }
    if seen != known {
        SEEN.with_borrow_mut(|all| all.insert(property.encoded().into(), seen));
    }
    Some(found.unwrap_or(Cow::Borrowed(UNREADABLE)))
}

/// A value of metadata.
struct MetadataValue<'v, 'h, 'n> {
    call: &'v StreamCall<'h>,
    namespace: &'n [u8],
    key: &'n [u8],
}

impl<'v> MetadataValue<'v, '_, '_> {
    /// The value. `None` if no getter knows it.
    fn read(&self, seen: &mut KnownTypes) -> Option<Cow<'v, [u8]>> {
        match self.call.list_size(self.namespace, self.key) {
            Some(size) => self.list(size, seen),
            None => self.single(seen),
        }
    }

    fn single(&self, seen: &mut KnownTypes) -> Option<Cow<'v, [u8]>> {
        let MetadataValue { call, namespace, key } = *self;
        let read = |kind| {
            Some(match kind {
                Kind::Text => Cow::Borrowed(call.metadata_text(namespace, key)?),
                Kind::Number => {
                    Cow::Owned(call.metadata_number(namespace, key)?.to_le_bytes().into())
                }
                Kind::Flag => Cow::Owned(vec![u8::from(call.metadata_flag(namespace, key)?)]),
            })
        };
        let kinds = seen.kinds.into_iter().enumerate();
        let (place, bytes) = kinds.filter_map(|(place, kind)| Some((place, read(kind)?))).next()?;
        seen.kinds.get_mut(..=place)?.rotate_right(1);
        Some(bytes)
    }

    fn list(&self, size: usize, seen: &mut KnownTypes) -> Option<Cow<'v, [u8]>> {
        let MetadataValue { call, namespace, key } = *self;
        let is_known = |(place, kind)| place < size && self.has_item(place, kind);
        if seen.odd.is_some_and(is_known) {
            return Some(Cow::Borrowed(UNREADABLE));
        }
        let mut items = Vec::with_capacity(size);
        for place in 0..size {
            let Some(item) = call.list_text(namespace, key, place) else {
                let mut others = [Kind::Number, Kind::Flag].map(|kind| (place, kind)).into_iter();
                seen.odd = others.find(|(place, kind)| self.has_item(*place, *kind));
                return seen.odd.map(|_| Cow::Borrowed(UNREADABLE));
            };
            items.push(item);
        }
        seen.odd = None;
        Some(Cow::Owned(encoded(&items)))
    }

    /// Returns true if the list has an item of this type at this place, which must be below its size.
    fn has_item(&self, place: usize, kind: Kind) -> bool {
        match kind {
            Kind::Text => self.call.list_text(self.namespace, self.key, place).is_some(),
            Kind::Number => self.call.is_list_number(self.namespace, self.key, place),
            Kind::Flag => self.call.is_list_flag(self.namespace, self.key, place),
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
