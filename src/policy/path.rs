//! Paths in the configuration and in requests.

use std::borrow::Cow;

use super::{Prefix, Wildcard};
use crate::spelling::{decoded, is_unreserved, only_reading};

/// The wildcards of a path, for messages.
pub const WILDCARDS: &str =
    "wildcards are `*` or `{name}` for a whole segment, and `**` at the end";

/// The beginnings of paths that are patterns elsewhere: regular expressions, and locations of NGINX.
const FOREIGN: &[char] = &['^', '~', '=', '*', '{', ':', '(', '\\'];

/// Parts of regular expressions that a path in normal form cannot have.
const REGEX: &[&str] = &["(?", ")?", "?}", "]?", "\\d+", "\\d*", "\\d{", "\\w", "\\.", "\\/"];

impl Prefix {
    /// Parses a path of the configuration. A segment `*` or `{name}` stands for every name. `**` or
    /// `{name=**}` at the end stands for everything below, which a path covers anyhow. Everything
    /// else is literal text.
    ///
    /// # Errors
    /// The mistake, if the path does not begin with `/`, or is not in the normal form that
    /// requests are compared in.
    pub fn parse(written: &str, ignore_case: bool) -> Result<Prefix, String> {
        if !written.starts_with('/') {
            let what = "must begin with `/`";
            return Err(match written.starts_with(FOREIGN) {
                true => format!("{what}; {WILDCARDS}"),
                false => what.into(),
            });
        }
        let mut path = normal(written.as_bytes());
        let bare = if written.len() > 1 { written.trim_end_matches('/') } else { written };
        if path != bare.as_bytes() {
            let what = "never matches, since paths are normalized first";
            if REGEX.iter().any(|part| written.contains(part)) {
                return Err(format!("is no regular expression; {WILDCARDS}"));
            }
            return Err(match std::str::from_utf8(&path) {
                Ok(plain) if normal(&path) == path => format!("{what}; write `{plain}`"),
                _ => format!("{what}; no configured path has this meaning"),
            });
        }
        if ignore_case {
            path.make_ascii_lowercase();
        }
        // The names of wildcards keep their case.
        Ok(Prefix::with_wildcards(bare, &path, ignore_case))
    }

    /// The path `written` with its wildcards. `path` is its normal form.
    fn with_wildcards(written: &str, path: &[u8], ignore_case: bool) -> Prefix {
        let last = segments(path).count().saturating_sub(1);
        let (mut plain, mut wildcards, mut rest) = (Vec::new(), Vec::<Wildcard>::new(), None);
        let written = segments(written.as_bytes());
        for (segment, (spelled, literal)) in written.zip(segments(path)).enumerate() {
            let text = std::str::from_utf8(spelled).unwrap_or_default();
            let name = wildcard(text, segment == last);
            let repeats = |name: &str| wildcards.iter().any(|it| it.name.as_deref() == Some(name));
            match name.filter(|found| !found.name().is_some_and(repeats)) {
                Some(Pattern::Rest(name)) => {
                    rest = Some(name.unwrap_or_default().into());
                    continue;
                }
                Some(Pattern::Segment(name)) => {
                    plain.extend_from_slice(b"/*");
                    wildcards.push(Wildcard { segment, name: name.map(Box::from) });
                }
                None => {
                    plain.push(b'/');
                    plain.extend_from_slice(literal);
                }
            }
        }
        if plain.is_empty() {
            plain.push(b'/');
        }
        Prefix { path: plain.into(), ignore_case, wildcards: wildcards.into(), rest }
    }

    /// The path in normal form, in lower case if case is ignored, with `*` for each wildcard.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns true if case is ignored.
    #[must_use]
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Returns true if `name` can be the name of a wildcard.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(is_part)
    }

    /// Returns true if it has wildcards, also at the end.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        !self.wildcards.is_empty() || self.rest.is_some()
    }

    /// Its segments, without `**`.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let wildcard = |segment| self.wildcards.iter().find(move |it| it.segment == segment);
        segments(&self.path).enumerate().map(move |(at, name)| match wildcard(at) {
            Some(wildcard) => Segment::Any(wildcard.name.as_deref()),
            None => Segment::Name(name),
        })
    }

    /// The names of its wildcards, with that of `{name=**}`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.wildcards.iter().filter_map(|wildcard| wildcard.name.as_deref());
        names.chain(self.rest.as_deref().filter(|name| !name.is_empty()))
    }

    /// Returns true if `path`, in plain spelling, is at or below this prefix.
    #[must_use]
    pub fn covers(&self, path: &[u8]) -> bool {
        if self.path.len() <= 1 {
            return true;
        }
        if self.is_pattern() {
            return self.split(path).is_some();
        }
        let Some((head, tail)) = path.split_at_checked(self.path.len()) else { return false };
        let same = if self.ignore_case {
            head.eq_ignore_ascii_case(&self.path)
        } else {
            head == &*self.path
        };
        same && matches!(tail.first(), None | Some(b'/'))
    }

    /// Splits `path`, in plain spelling, behind the segments of this prefix. `None` if it does not
    /// cover the path.
    #[must_use]
    pub fn split<'p>(&self, path: &'p [u8]) -> Option<(&'p [u8], &'p [u8])> {
        let mut end = 0;
        for wanted in self.segments() {
            let rest = path.get(end..)?.strip_prefix(b"/")?;
            let length = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
            let name = rest.get(..length)?;
            let fits = match wanted {
                Segment::Any(_) => !name.is_empty(),
                Segment::Name(wanted) if self.ignore_case => name.eq_ignore_ascii_case(wanted),
                Segment::Name(wanted) => name == wanted,
            };
            if !fits {
                return None;
            }
            end += 1 + length;
        }
        path.split_at_checked(end)
    }

    /// The value of the wildcard `name` in a path in plain spelling.
    /// `None` if this prefix does not cover it, or has no such wildcard.
    #[must_use]
    pub fn capture<'p>(&self, name: &str, path: &'p [u8]) -> Option<&'p [u8]> {
        let (head, below) = self.split(path)?;
        if self.rest.as_deref() == Some(name) {
            return Some(below.strip_prefix(b"/").unwrap_or(below));
        }
        let is_named = |wildcard: &&Wildcard| wildcard.name.as_deref() == Some(name);
        let wildcard = self.wildcards.iter().find(is_named)?;
        segments(head).nth(wildcard.segment)
    }
}

/// A segment of a configured path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'p> {
    /// This name.
    Name(&'p [u8]),
    /// Every name. The wildcard may have a name itself.
    Any(Option<&'p str>),
}

/// A wildcard as written, with its name.
enum Pattern<'w> {
    /// One segment.
    Segment(Option<&'w str>),
    /// Everything below.
    Rest(Option<&'w str>),
}

impl<'w> Pattern<'w> {
    fn name(&self) -> Option<&'w str> {
        match self {
            Pattern::Segment(name) | Pattern::Rest(name) => *name,
        }
    }
}

/// Reads a segment of the configuration as a wildcard.
fn wildcard(segment: &str, is_last: bool) -> Option<Pattern<'_>> {
    let is_name = |name: &&str| Prefix::is_name(name);
    match segment {
        "*" => return Some(Pattern::Segment(None)),
        "**" if is_last => return Some(Pattern::Rest(None)),
        _ => {}
    }
    let inner = segment.strip_prefix('{')?.strip_suffix('}')?;
    match inner.strip_suffix("=**") {
        Some(name) => {
            Some(name).filter(is_name).filter(|_| is_last).map(|it| Pattern::Rest(Some(it)))
        }
        None => Some(inner).filter(is_name).map(|name| Pattern::Segment(Some(name))),
    }
}

/// The segments of a path in normal form. `/` has none.
fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty())
}

/// The normal form of a path: `/`, or segments with a leading `/` each.
///
/// Query and fragment are cut off. There is one round of percent-decoding. `\` becomes `/`. Each
/// segment ends at its first `;`. Empty and dot segments are resolved.
fn normal(written: &[u8]) -> Vec<u8> {
    let mut out = vec![b'/'];
    let mut parameters = false;
    for byte in decoded(Path::of(written).text) {
        match byte {
            b'/' | b'\\' => {
                end_segment(&mut out);
                parameters = false;
            }
            b';' => parameters = true,
            _ if parameters => {}
            _ => out.push(byte),
        }
    }
    end_segment(&mut out);
    if out.len() > 1 {
        out.pop();
    }
    out
}

/// A request's path without query and fragment.
#[derive(Debug, Clone, Copy)]
pub struct Path<'r> {
    /// As the request spells it.
    pub text: &'r [u8],
    /// Whether there is only one reading: no escapes, no `\`, no parameters, no empty or dot
    /// segments. A trailing slash makes no difference.
    pub is_plain: bool,
}

/// Bytes with only one reading, as nearly all in a path: all except `%`, `\`, `;`, `?`, `#`, `/`
/// and `.`.
const IS_ORDINARY: [bool; 256] = {
    let (mut ordinary, mut rest) = ([true; 256], b"%\\;?#/.".as_slice());
    while let [byte, more @ ..] = rest {
        let (before, _) = ordinary.split_at_mut(*byte as usize + 1);
        if let [.., last] = before {
            *last = false;
        }
        rest = more;
    }
    ordinary
};

impl<'r> Path<'r> {
    /// The path in `:path`.
    #[must_use]
    pub fn of(raw: &'r [u8]) -> Path<'r> {
        // `segment` is the start of the current segment.
        let (mut end, mut segment, mut dots) = (raw.len(), usize::MAX, false);
        let mut is_plain = raw.first() == Some(&b'/');
        for (at, &byte) in raw.iter().enumerate() {
            if IS_ORDINARY.get(usize::from(byte)) == Some(&true) {
                continue;
            }
            match byte {
                b'?' | b'#' => {
                    end = at;
                    break;
                }
                b'/' => {
                    is_plain &= at != segment;
                    segment = at + 1;
                }
                b'.' => dots |= at == segment,
                _ => is_plain = false,
            }
        }
        let text = raw.get(..end).unwrap_or_default();
        is_plain &= !(dots && has_dot_segment(text));
        Path { text, is_plain }
    }

    /// The percent-decoded path, if all readers decode it to the same.
    #[must_use]
    pub fn only_reading(&self) -> Option<Cow<'r, [u8]>> {
        if !self.text.starts_with(b"/") {
            return None;
        }
        // Some readers trim other bytes, or refuse them.
        if self.is_plain && self.text.iter().all(u8::is_ascii_graphic) {
            return Some(Cow::Borrowed(self.text));
        }
        // Before the path is copied, since most hostile paths end here.
        let is_ambiguous = |pair: &[u8]| pair == b"//" || pair.iter().any(|it| b"\\;".contains(it));
        if self.text.windows(2).any(is_ambiguous) || has_dot_segment(self.text) {
            return None;
        }
        // `/`, `\` and `;` are data for some readers only.
        let is_data = |byte: u8| !is_unreserved(byte) && !b"/\\;".contains(&byte);
        let decoded = only_reading(self.text, is_data)?;
        let text = std::str::from_utf8(&decoded).ok()?;
        // A reader may trim a name, or cut a query off the decoded text and resolve the rest.
        let is_odd = |name: &str| {
            !name.is_empty() && name.chars().all(|sign| sign == '.' || sign.is_whitespace())
        };
        let has_odd_name = text.split(['/', '?', '#']).any(is_odd);
        (!has_odd_name).then_some(Cow::Owned(decoded))
    }
}

fn has_dot_segment(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'/').any(|name| matches!(name, b"." | b".."))
}

/// Ends the last segment of `out`, so that `out` ends in `/` again.
fn end_segment(out: &mut Vec<u8>) {
    let start = out.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    match out.get(start..).unwrap_or_default() {
        b"" => {}
        b"." => out.truncate(start),
        b".." => {
            out.truncate(start.saturating_sub(1));
            let parent = out.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
            out.truncate(parent);
            if out.is_empty() {
                out.push(b'/');
            }
        }
        _ => out.push(b'/'),
    }
}
