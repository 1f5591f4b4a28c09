//! Query parameters.

use super::{Pair, may_name, only_component};

/// The possible values of a path's query parameter. Some upstreams treat `;` as a separator like
/// `&`: one pair then is several, and one value two.
pub fn pairs<'a>(path: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = Pair<'a>> {
    let path = path.split(|&byte| byte == b'#').next().unwrap_or_default();
    let start = path.iter().position(|&byte| byte == b'?').map_or(path.len(), |mark| mark + 1);
    let query = path.get(start..).unwrap_or_default();
    let pairs = query.split(|&byte| byte == b'&').flat_map(|pair| {
        let parts = pair.split(|&byte| byte == b';').filter(move |part| part.len() < pair.len());
        std::iter::once((pair, true)).chain(parts.map(|part| (part, false)))
    });
    pairs.filter_map(move |(pair, is_whole)| {
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        let key = halves.next()?;
        may_name(key, name).then(|| Pair {
            value: halves.next().unwrap_or_default(),
            is_plain: is_whole && key == name,
            is_encoded: is_whole && only_component(key).is_some_and(|key| key == name),
        })
    })
}
