//! RESP, the protocol of Redis, version 2: writes commands and parses replies.
//!
//! The input may be any bytes, such as the error page of a proxy. The parser trusts no length in
//! it, and requires complete replies from the first byte to the last.

/// The maximum nesting of arrays.
const DEPTH: usize = 4;

/// The maximum number of replies, including those in arrays.
const MOST: usize = 1 << 16;

/// A value of RESP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'b> {
    /// A simple string such as `OK`.
    Simple(&'b [u8]),
    /// An error: a code in capitals and a message.
    Error(&'b [u8]),
    /// An integer.
    Integer(i64),
    /// A string of bytes.
    Bulk(&'b [u8]),
    /// A null value.
    Nil,
    /// An array.
    Array(Vec<Value<'b>>),
}

/// Starts a command of `words` words. Add each with [`word`].
pub fn command(out: &mut Vec<u8>, words: usize) {
    line(out, b'*', words);
}

/// Adds a word to a command.
pub fn word(out: &mut Vec<u8>, word: &[u8]) {
    line(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend(length.to_string().bytes());
    out.extend_from_slice(b"\r\n");
}

/// Parses `bytes` as replies. `None` if they are malformed.
#[must_use]
pub fn values(bytes: &[u8]) -> Option<Vec<Value<'_>>> {
    let mut reader = RespReader { rest: bytes, left: MOST };
    let mut replies = Vec::new();
    while !reader.rest.is_empty() {
        replies.push(reader.reply(DEPTH)?);
    }
    Some(replies)
}

impl<'b> Value<'b> {
    /// The message of an error.
    #[must_use]
    pub fn error(&self) -> Option<&'b [u8]> {
        match self {
            Value::Error(message) => Some(message),
            _ => None,
        }
    }
}

struct RespReader<'b> {
    rest: &'b [u8],
    /// Remaining replies.
    left: usize,
}

impl<'b> RespReader<'b> {
    fn reply(&mut self, depth: usize) -> Option<Value<'b>> {
        self.left = self.left.checked_sub(1)?;
        let (kind, line) = self.line()?.split_first()?;
        match kind {
            b'+' => Some(Value::Simple(line)),
            b'-' => Some(Value::Error(line)),
            b':' => Some(Value::Integer(number(line)?)),
            b'$' => self.bulk(number(line)?),
            b'*' => self.array(number(line)?, depth.checked_sub(1)?),
            _ => None,
        }
    }

    fn bulk(&mut self, length: i64) -> Option<Value<'b>> {
        if length == -1 {
            return Some(Value::Nil);
        }
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest.strip_prefix(b"\r\n")?;
        Some(Value::Bulk(bytes))
    }

    fn array(&mut self, length: i64, depth: usize) -> Option<Value<'b>> {
        if length == -1 {
            return Some(Value::Nil);
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= self.left)?;
        // No capacity up front: the length may be wrong.
        let mut replies = Vec::new();
        for _ in 0..length {
            replies.push(self.reply(depth)?);
        }
        Some(Value::Array(replies))
    }

    fn line(&mut self) -> Option<&'b [u8]> {
        let end = self.rest.windows(2).position(|two| two == b"\r\n")?;
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(2..)?;
        Some(line)
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    str::from_utf8(digits).ok()?.parse().ok()
}
