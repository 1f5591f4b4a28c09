//! The columns of a line of text: words, `[…]`, and `"…"`.

use memchr::{memchr, memchr_iter};

/// Columns that are read at most.
const MOST: usize = 64;

/// Where each column begins and ends, without its quotes or brackets.
#[derive(Debug, Default)]
pub struct Columns(Vec<(u32, u32)>);

impl Columns {
    /// Finds the columns of a line.
    pub fn split(&mut self, line: &[u8]) {
        self.0.clear();
        let mut at = 0;
        while self.0.len() < MOST
            && let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty())
        {
            let (from, length) = match rest.first() {
                Some(b' ') => {
                    at += 1;
                    continue;
                }
                Some(b'"') => (1, quoted(rest)),
                Some(b'[') if let Some(end) = bracketed(rest) => (1, end),
                // Most words are short.
                _ => (0, rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len())),
            };
            let start = at + from;
            let end = (start + length).min(line.len());
            self.0.push((start as u32, end as u32));
            at = end + from;
        }
    }

    /// A column of that line, counted from zero.
    pub fn of<'l>(&self, line: &'l [u8], column: usize) -> Option<&'l [u8]> {
        let (start, end) = self.span(column)?;
        line.get(start as usize..end as usize)
    }

    /// Where a column begins and ends.
    pub fn span(&self, column: usize) -> Option<(u32, u32)> {
        self.0.get(column).copied()
    }
}

/// Bytes between the brackets, unless they are those of an address with a port.
fn bracketed(rest: &[u8]) -> Option<usize> {
    let end = memchr(b']', rest)?;
    matches!(rest.get(end + 1), None | Some(b' ')).then(|| end - 1)
}

/// Bytes between the quotes. Envoy escapes none, so the one that ends it is one before a space, or
/// the last.
fn quoted(rest: &[u8]) -> usize {
    let text = rest.get(1..).unwrap_or_default();
    let ends = |at: &usize| matches!(text.get(at + 1), None | Some(b' '));
    memchr_iter(b'"', text).find(ends).unwrap_or(text.len())
}
