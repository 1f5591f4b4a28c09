//! Paths in the configuration and in requests.

use std::borrow::Cow;

use super::Prefix;
use crate::spelling::{decoded, is_unreserved, only_reading};

impl Prefix {
    /// Parses a path of the configuration.
    ///
    /// # Errors
    /// The mistake, if the path does not begin with `/`, or is not in the normal form that
    /// requests are compared in.
    pub fn parse(written: &str, ignore_case: bool) -> Result<Prefix, String> {
        if !written.starts_with('/') {
            return Err("must begin with `/`".into());
        }
        let mut path = normal(written.as_bytes());
        let bare = if written.len() > 1 { written.trim_end_matches('/') } else { written };
        if path != bare.as_bytes() {
            let what = "never matches, since paths are normalized first";
            return Err(match std::str::from_utf8(&path) {
                Ok(plain) if normal(&path) == path => format!("{what}; write `{plain}`"),
                _ => format!("{what}; no configured path has this meaning"),
            });
        }
        if ignore_case {
            path.make_ascii_lowercase();
        }
        Ok(Prefix { path: path.into(), ignore_case })
    }

    /// The path in normal form, in lower case if case is ignored.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns true if case is ignored.
    #[must_use]
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Returns true if `path`, in plain spelling, is at or below this prefix.
    #[must_use]
    pub fn covers(&self, path: &[u8]) -> bool {
        if self.path.len() <= 1 {
            return true;
        }
        let Some((head, tail)) = path.split_at_checked(self.path.len()) else { return false };
        let same = if self.ignore_case {
            head.eq_ignore_ascii_case(&self.path)
        } else {
            head == &*self.path
        };
        same && matches!(tail.first(), None | Some(b'/'))
    }
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
        let is_dots = |name: &[u8]| matches!(name, b"." | b"..");
        if dots && text.split(|&byte| byte == b'/').any(is_dots) {
            is_plain = false;
        }
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
        // `/`, `\` and `;` are data for some readers only.
        let is_data = |byte: u8| !is_unreserved(byte) && !b"/\\;".contains(&byte);
        let decoded = only_reading(self.text, is_data)?;
        let text = std::str::from_utf8(&decoded).ok()?;
        // A reader may trim a name, or cut a query off the decoded text and resolve the rest.
        let is_odd = |name: &str| {
            !name.is_empty() && name.chars().all(|sign| sign == '.' || sign.is_whitespace())
        };
        let is_plain = !text.contains(['\\', ';'])
            && !text.contains("//")
            && !text.split(['/', '?', '#']).any(is_odd);
        is_plain.then_some(Cow::Owned(decoded))
    }
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
