//! The order of documents, so that a server that is behind takes no gateway back.

#[cfg(test)]
mod tests;

use std::fmt::{self, Write};

use hyper::header::{HeaderMap, IF_NONE_MATCH};

/// The header with the document of a gateway.
const DOCUMENT: &str = "x-diana-document";

/// The state of the API server that a document is made of: the version of the newest object of each
/// kind. Without policies it is empty.
///
/// Kinds are watched separately, so of two orders neither may cover the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentOrder(Vec<u64>);

impl DocumentOrder {
    /// The versions of the newest objects.
    #[cfg(any(test, feature = "policies"))]
    pub fn of(versions: impl IntoIterator<Item = u64>) -> DocumentOrder {
        DocumentOrder(versions.into_iter().collect())
    }

    /// The version of one kind.
    #[cfg(feature = "policies")]
    pub fn version(&self, kind: usize) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// Returns true if no kind of the other order is newer.
    pub fn covers(&self, other: &DocumentOrder) -> bool {
        self.joined(other) == *self
    }

    /// The newest of both for each kind.
    pub fn joined(&self, other: &DocumentOrder) -> DocumentOrder {
        let DocumentOrder(mut longer) = self.clone();
        longer.resize(self.0.len().max(other.0.len()), 0);
        longer.iter_mut().zip(&other.0).for_each(|(one, other)| *one = (*one).max(*other));
        DocumentOrder(longer)
    }
}

/// The tag of a document, the value of `etag` in its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentTag {
    /// The version of its text.
    pub version: u64,
    /// The versions of the objects that it was made of.
    pub order: DocumentOrder,
}

impl fmt::Display for DocumentTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{:016x}", self.version)?;
        self.order.0.iter().try_for_each(|version| write!(f, ".{version:x}"))?;
        f.write_char('"')
    }
}

impl DocumentTag {
    /// Reads a tag. A proxy that compresses makes tags weak, and HTTP compares both kinds alike.
    fn read(text: &str) -> Option<DocumentTag> {
        let text = text.strip_prefix("W/").unwrap_or(text);
        let (version, order) = {
            let mut parts = text.strip_prefix('"')?.strip_suffix('"')?.split('.');
            let version = parts.next().filter(|version| version.len() == 16)?;
            (version, parts.map(|part| u64::from_str_radix(part, 16)).collect::<Result<_, _>>())
        };
        Some(DocumentTag {
            version: u64::from_str_radix(version, 16).ok()?,
            order: DocumentOrder(order.ok()?),
        })
    }
}

/// The document that a client has.
#[derive(Debug, PartialEq, Eq)]
pub enum Had {
    /// None: the request has no tag.
    Nothing,
    /// Any, which is enough for it.
    Any,
    /// A tag of this server or of another one with the same rules.
    Tagged(DocumentTag),
    /// A text of this version.
    Text(u64),
}

impl Had {
    /// Reads the headers of a request. Of several tags, the one of the served version counts.
    pub fn read(headers: &HeaderMap, served: u64) -> Had {
        let lists = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|it| it.to_str().ok());
        let texts: Vec<&str> = lists.flat_map(|list| list.split(',')).map(str::trim).collect();
        if texts.contains(&"*") {
            return Had::Any;
        }
        let tags = texts.iter().filter_map(|text| DocumentTag::read(text));
        if let Some(tag) = tags.max_by_key(|tag| tag.version == served) {
            return Had::Tagged(tag);
        }
        let text = headers.get(DOCUMENT).and_then(|it| it.to_str().ok()?.split(' ').next());
        let version = text.and_then(|text| u64::from_str_radix(text, 16).ok());
        version.map_or(Had::Nothing, Had::Text)
    }
}

/// The answer to a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Due {
    /// 304: it has the document with this tag.
    Nothing(DocumentTag),
    /// The document with this tag.
    Document(DocumentTag),
    /// It waits until this server has listed the objects again: its own document may be older.
    Later,
}

impl Due {
    /// The answer of a server that has read objects up to `seen`.
    pub fn of(served: &DocumentTag, seen: &DocumentOrder, had: &Had) -> Due {
        match had {
            Had::Nothing => Due::Document(served.clone()),
            Had::Any => Due::Nothing(served.clone()),
            // A server without policies has no order.
            Had::Tagged(had) if *seen == DocumentOrder::default() => {
                if had.version == served.version {
                    Due::Nothing(served.clone())
                } else {
                    Due::Document(served.clone())
                }
            }
            Had::Text(_) if *seen == DocumentOrder::default() => Due::Document(served.clone()),
            // Which objects it was made of is not known.
            Had::Text(version) => match *version == served.version {
                true => Due::Document(served.clone()),
                false => Due::Later,
            },
            Had::Tagged(had) => {
                if had.version != served.version && !seen.covers(&had.order) {
                    return Due::Later;
                }
                // The versions that the client has seen stay, also if an older state had the same text.
                let tag =
                    DocumentTag { version: served.version, order: served.order.joined(&had.order) };
                if tag == *had { Due::Nothing(tag) } else { Due::Document(tag) }
            }
        }
    }
}
