//! Just enough JSON for the claims of a token and the answers of a configuration centre: one member
//! of an object, or what a pointer leads to.

pub mod object;
pub mod tree;

use std::slice::Iter;

/// The member `name` of the object in `json`, if it is text or a whole number; the last one of
/// several. Members that are not asked for are skipped without a closer look.
#[must_use]
pub fn member(json: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut json = Reader(json);
    let mut found = None;
    if json.next()? != b'{' {
        return None;
    }
    loop {
        let key = json.text()?;
        if json.next()? != b':' {
            return None;
        }
        if unescape(key)? == name.as_bytes() {
            let rest = json.0;
            json.skip()?;
            let mut value = Reader(rest.get(..rest.len() - json.0.len())?);
            found = value.scalar().filter(|_| value.0.trim_ascii_start().is_empty());
        } else {
            json.skip()?;
        }
        match json.next()? {
            b',' => {}
            b'}' => return found,
            _ => return None,
        }
    }
}

/// What a pointer (RFC 6901) of at least one step leads to: what text means, or any other value as it
/// is written; nothing if there is no such value, or it is `null`.
#[must_use]
pub fn pointed(json: &[u8], pointer: &str) -> Option<Vec<u8>> {
    let mut json = Reader(json);
    for step in pointer.split('/').skip(1) {
        json.enter(&plain(step))?;
    }
    json.value()
}

/// What is still to be read.
struct Reader<'j>(&'j [u8]);

// What is not inlined has many callers, and time enough.
impl<'j> Reader<'j> {
    /// Takes the next byte that is no white space.
    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.trim_ascii_start().split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Takes text in quotes, its escapes as they are.
    #[inline(never)]
    fn text(&mut self) -> Option<&'j [u8]> {
        if self.next()? != b'"' {
            return None;
        }
        let mut escaped = false;
        let end = self.0.iter().position(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        let (text, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(text)
    }

    /// Goes to the member or the item that a step of a pointer names.
    fn enter(&mut self, step: &str) -> Option<()> {
        match self.next()? {
            b'{' => loop {
                let key = self.text()?;
                if self.next()? != b':' {
                    return None;
                }
                if unescape(key)? == step.as_bytes() {
                    return Some(());
                }
                self.skip_to_next()?;
            },
            b'[' => (0..index(step)?).try_for_each(|_| self.skip_to_next()),
            _ => None,
        }
    }

    fn skip_to_next(&mut self) -> Option<()> {
        self.skip()?;
        (self.next()? == b',').then_some(())
    }

    /// Takes any value but `null`.
    fn value(&mut self) -> Option<Vec<u8>> {
        let json = self.0.trim_ascii_start();
        self.0 = json;
        if json.first() == Some(&b'"') {
            return unescape(self.text()?);
        }
        self.skip()?;
        let value = json.get(..json.len() - self.0.len())?.trim_ascii_end();
        (!value.is_empty() && value != b"null").then(|| value.into())
    }

    /// Takes text, or a whole number as it is written.
    fn scalar(&mut self) -> Option<Vec<u8>> {
        let json = self.0.trim_ascii_start();
        if json.first() == Some(&b'"') {
            return unescape(self.text()?);
        }
        let sign = usize::from(json.first() == Some(&b'-'));
        let digits = json.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = json.split_at_checked(sign + digits)?;
        self.0 = rest;
        (digits > 0).then(|| number.into())
    }

    /// Takes any value: up to the comma or bracket that ends it.
    #[inline(never)]
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            let here = self.0;
            match self.next()? {
                b'"' => {
                    self.0 = here;
                    self.text()?;
                }
                b'[' | b'{' => depth += 1,
                b',' | b']' | b'}' if depth == 0 => {
                    self.0 = here;
                    return Some(());
                }
                b']' | b'}' => depth -= 1,
                _ => {}
            }
        }
    }
}

/// A step of a pointer, in which `~0` stands for `~` and `~1` for `/`.
fn plain(step: &str) -> String {
    let mut escaped = false;
    let plain = step.chars().filter_map(|found| match (std::mem::take(&mut escaped), found) {
        (true, '0') => Some('~'),
        (true, '1') => Some('/'),
        (_, '~') => {
            escaped = true;
            None
        }
        _ => Some(found),
    });
    plain.collect()
}

/// The place of an item, as a pointer writes it.
fn index(step: &str) -> Option<usize> {
    let is_index = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_index)
}

/// What the text between two quotes means.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match *bytes.next()? {
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'n' => plain.push(b'\n'),
            b'r' => plain.push(b'\r'),
            b't' => plain.push(b'\t'),
            b'u' => {
                plain.extend_from_slice(character(&mut bytes)?.encode_utf8(&mut [0; 4]).as_bytes())
            }
            byte @ (b'"' | b'\\' | b'/') => plain.push(byte),
            _ => return None,
        }
    }
    Some(plain)
}

/// The character after `\u`, which may take a second `\u`.
fn character(bytes: &mut Iter<'_, u8>) -> Option<char> {
    let first = unit(bytes)?;
    let second = match first {
        0xd800..0xdc00 if bytes.next() == Some(&b'\\') && bytes.next() == Some(&b'u') => {
            Some(unit(bytes)?)
        }
        _ => None,
    };
    char::decode_utf16([first].into_iter().chain(second)).next()?.ok()
}

fn unit(bytes: &mut Iter<'_, u8>) -> Option<u16> {
    (0..4).try_fold(0, |unit, _| Some(unit << 4 | char::from(*bytes.next()?).to_digit(16)? as u16))
}
