//! What Redis speaks, version 2: commands out, replies in.
//!
//! What comes in may be anything, such as a proxy's page about an error: no length in it is
//! believed, and it has to be replies from the first byte to the last.

/// How deep arrays may lie in each other.
const DEPTH: usize = 4;

/// Most replies, those inside arrays counted.
const MOST: usize = 1 << 16;

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<'b> {
    /// A word such as `OK`.
    Simple(&'b [u8]),
    /// A failure: a code in capitals and a message.
    Error(&'b [u8]),
    /// A number.
    Integer(i64),
    /// Any bytes.
    Bulk(&'b [u8]),
    /// Nothing.
    Nil,
    /// Several replies.
    Array(Vec<Reply<'b>>),
}

/// Begins a command of `words` words, each of which [`word`] has to add.
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

/// The replies that `bytes` consists of; nothing if it is anything else.
#[must_use]
pub fn replies(bytes: &[u8]) -> Option<Vec<Reply<'_>>> {
    let mut reader = Reader { rest: bytes, left: MOST };
    let mut replies = Vec::new();
    while !reader.rest.is_empty() {
        replies.push(reader.reply(DEPTH)?);
    }
    Some(replies)
}

struct Reader<'b> {
    rest: &'b [u8],
    /// Replies that may still come.
    left: usize,
}

impl<'b> Reader<'b> {
    fn reply(&mut self, depth: usize) -> Option<Reply<'b>> {
        self.left = self.left.checked_sub(1)?;
        let (kind, line) = self.line()?.split_first()?;
        match kind {
            b'+' => Some(Reply::Simple(line)),
            b'-' => Some(Reply::Error(line)),
            b':' => Some(Reply::Integer(number(line)?)),
            b'$' => self.bulk(number(line)?),
            b'*' => self.array(number(line)?, depth.checked_sub(1)?),
            _ => None,
        }
    }

    fn bulk(&mut self, length: i64) -> Option<Reply<'b>> {
        if length == -1 {
            return Some(Reply::Nil);
        }
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest.strip_prefix(b"\r\n")?;
        Some(Reply::Bulk(bytes))
    }

    fn array(&mut self, length: i64, depth: usize) -> Option<Reply<'b>> {
        if length == -1 {
            return Some(Reply::Nil);
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= self.left)?;
        // Grows with what really came.
        let mut replies = Vec::new();
        for _ in 0..length {
            replies.push(self.reply(depth)?);
        }
        Some(Reply::Array(replies))
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
