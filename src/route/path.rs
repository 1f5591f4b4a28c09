//! Paths in the one form in which they are compared.

use std::borrow::Cow;

/// A configured path; it covers whole segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    path: Box<[u8]>,
    ignore_case: bool,
}

impl Prefix {
    /// A prefix from a path as written in a configuration.
    ///
    /// # Errors
    /// Says what is wrong when the path does not begin with `/`, or is written in a form that
    /// requests are never compared in.
    pub fn parse(written: &str, ignore_case: bool) -> Result<Prefix, String> {
        if !written.starts_with('/') {
            return Err("must begin with `/`".into());
        }
        let mut path = Vec::new();
        normalise(written.as_bytes(), &mut path);
        let bare = if written.len() > 1 { written.trim_end_matches('/') } else { written };
        if path != bare.as_bytes() {
            let normal = String::from_utf8_lossy(&path);
            return Err(format!(
                "is never what a request's path is compared with; write `{normal}`"
            ));
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

    /// Whether case is ignored.
    #[must_use]
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Whether `path`, in normal form, lies at or below this prefix.
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

/// Writes the normal form of a request's path into `out`: `/`, or segments each led by `/`.
///
/// Query and fragment are cut off; one round of percent-decoding; `\` is `/`; each segment ends at
/// its first `;`; empty and dot segments are resolved. Bytes need not be UTF-8.
///
/// Returns whether the request spells its path so itself; a slash at its end makes no difference.
pub fn normalise(raw: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let end = raw.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(raw.len());
    let written = raw.get(..end).unwrap_or_default();
    let mut bytes = written.iter().copied();
    out.push(b'/');
    let mut parameters = false;
    while let Some(byte) = next_decoded(&mut bytes) {
        match byte {
            b'/' | b'\\' => {
                end_segment(out);
                parameters = false;
            }
            b';' => parameters = true,
            _ if parameters => {}
            _ => out.push(byte),
        }
    }
    end_segment(out);
    if out.len() > 1 {
        out.pop();
    }
    *written == **out || written.strip_suffix(b"/") == Some(out)
}

/// One round of percent-decoding.
#[must_use]
pub fn decode(raw: &[u8]) -> Cow<'_, [u8]> {
    if !raw.contains(&b'%') {
        return Cow::Borrowed(raw);
    }
    let mut bytes = raw.iter().copied();
    Cow::Owned(std::iter::from_fn(|| next_decoded(&mut bytes)).collect())
}

/// The next byte after one round of percent-decoding; a `%` without two hex digits is itself.
fn next_decoded(bytes: &mut (impl Iterator<Item = u8> + Clone)) -> Option<u8> {
    let byte = bytes.next()?;
    if byte != b'%' {
        return Some(byte);
    }
    let mut ahead = bytes.clone();
    match (ahead.next().and_then(hex), ahead.next().and_then(hex)) {
        (Some(high), Some(low)) => {
            *bytes = ahead;
            Some(high << 4 | low)
        }
        _ => Some(byte),
    }
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Closes the segment that `out` ends in, so that `out` ends in `/` again.
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
