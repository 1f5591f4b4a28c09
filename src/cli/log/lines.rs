//! The lines of a file in bounded memory: plain, or compressed by gzip or Zstandard.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;
use memchr::memchr;
use ruzstd::decoding::StreamingDecoder;

/// Maximum length of a line.
const LONGEST: usize = 1 << 20;

/// Bytes per read, so that they are still in the processor's cache when the lines are parsed.
const AT_ONCE: usize = 1 << 17;

/// The first bytes of compressed files.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum LogLine<'l> {
    /// Its text without the line end.
    Text(&'l [u8]),
    /// It exceeds the maximum length.
    TooLong,
}

/// Iterates over the lines of a file.
pub struct LogLines {
    from: Box<dyn Read>,
    buffer: Box<[u8]>,
    /// The unread part of the buffer.
    start: usize,
    end: usize,
    /// The number of lines so far.
    pub number: u64,
}

impl LogLines {
    /// The lines of a file. Its first bytes determine the compression.
    ///
    /// # Errors
    /// The file is unreadable.
    pub fn new(mut from: impl Read + 'static) -> io::Result<LogLines> {
        let mut first = Vec::new();
        from.by_ref().take(4).read_to_end(&mut first)?;
        let is = |magic: &[u8]| first.starts_with(magic);
        let (is_gzip, is_zstandard) = (is(GZIP), is(ZSTANDARD));
        let whole = Cursor::new(first).chain(from);
        let from: Box<dyn Read> = match () {
            () if is_gzip => {
                Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, whole)))
            }
            () if is_zstandard => Box::new(Frames::new(whole)?),
            () => Box::new(whole),
        };
        let buffer = vec![0; LONGEST + 1].into();
        Ok(LogLines { from, buffer, start: 0, end: 0, number: 0 })
    }

    /// The next line.
    ///
    /// # Errors
    /// The file ends unexpectedly, or is unreadable.
    pub fn next(&mut self) -> io::Result<Option<LogLine<'_>>> {
        let mut searched = 0;
        let (mut is_too_long, mut is_over) = (false, false);
        let length = loop {
            let rest = self.buffer.get(self.start + searched..self.end).unwrap_or_default();
            if let Some(found) = memchr(b'\n', rest) {
                break searched + found;
            }
            searched += rest.len();
            if is_over {
                break searched;
            }
            if searched > LONGEST {
                (is_too_long, searched) = (true, 0);
                self.start = self.end;
            }
            is_over = !self.fill()?;
        };
        if is_over && length == 0 && !is_too_long {
            return Ok(None);
        }
        let (start, end) = (self.start, self.start + length);
        self.start = (end + 1).min(self.end);
        self.number += 1;
        if is_too_long {
            return Ok(Some(LogLine::TooLong));
        }
        let line = self.buffer.get(start..end).unwrap_or_default();
        Ok(Some(LogLine::Text(line.strip_suffix(b"\r").unwrap_or(line))))
    }

    /// Reads more bytes. Returns false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let most = self.buffer.len().min(self.end + AT_ONCE);
        let room = self.buffer.get_mut(self.end..most).unwrap_or_default();
        loop {
            match self.from.read(room) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The bytes that were read ahead, followed by the rest.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// Iterates over the Zstandard frames of a file.
struct Frames<R: Read> {
    /// `None` only while the next frame begins.
    frame: Option<Frame<R>>,
}

type Frame<R> = StreamingDecoder<BufReader<Whole<R>>, ruzstd::decoding::FrameDecoder>;

impl<R: Read> Frames<R> {
    fn new(from: Whole<R>) -> io::Result<Frames<R>> {
        Ok(Frames { frame: Some(frame(BufReader::with_capacity(1 << 16, from))?) })
    }
}

fn frame<R: Read>(from: BufReader<Whole<R>>) -> io::Result<Frame<R>> {
    StreamingDecoder::new(from).map_err(io::Error::other)
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(current) = &mut self.frame else { return Ok(0) };
            let read = current.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some(ended) = self.frame.take() else { return Ok(0) };
            let mut rest = ended.into_inner();
            if rest.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.frame = Some(frame(rest)?);
        }
    }
}
