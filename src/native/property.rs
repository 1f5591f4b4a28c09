//! Properties of a stream, in the encoding of the wasm host: text as it is, a number or a flag in memory order, and a list as
//! a map whose values are empty.

use std::borrow::Cow;

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
            metadata(call, namespace, key)
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

fn metadata<'v>(call: &'v Call<'_>, namespace: &[u8], key: &[u8]) -> Option<Cow<'v, [u8]>> {
    if !call.has_metadata(namespace, key) {
        return None;
    }
    if let Some(text) = call.metadata_text(namespace, key) {
        return Some(Cow::Borrowed(text));
    }
    if let Some(number) = call.metadata_number(namespace, key) {
        return Some(Cow::Owned(number.to_le_bytes().into()));
    }
    if let Some(flag) = call.metadata_flag(namespace, key) {
        return Some(Cow::Owned(vec![u8::from(flag)]));
    }
    let list = call.metadata_list(namespace, key);
    Some(list.map_or(Cow::Borrowed(UNREADABLE), |items| Cow::Owned(encoded(&items))))
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
