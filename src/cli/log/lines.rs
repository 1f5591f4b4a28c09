//! The lines of a file in bounded memory, whatever it holds: plain, of gzip or of Zstandard.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;
use memchr::memchr;
use ruzstd::decoding::StreamingDecoder;

/// Longest line that is read.
const LONGEST: usize = 1 << 20;

/// Bytes that are read at once: as much as still lies in the processor's cache when its lines are read.
const AT_ONCE: usize = 1 << 17;

/// By which compressed files are known.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'l> {
    /// Its text, without what ends it.
    Text(&'l [u8]),
    /// It is longer than any line that is read.
    TooLong,
}

/// The lines of a file, one after the other.
pub struct Lines {
    from: Box<dyn Read>,
    buffer: Box<[u8]>,
    /// What of the buffer has been read from the file, and not yet by anybody else.
    start: usize,
    end: usize,
    /// How many lines were read.
    pub number: u64,
}

impl Lines {
    /// Lines of what may be compressed, which its first bytes tell.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(mut from: impl Read + 'static) -> io::Result<Lines> {
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
        Ok(Lines { from, buffer, start: 0, end: 0, number: 0 })
    }

    /// The next line.
    ///
    /// # Errors
    /// If the file breaks off, or cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
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
            return Ok(Some(Line::TooLong));
        }
        let line = self.buffer.get(start..end).unwrap_or_default();
        Ok(Some(Line::Text(line.strip_suffix(b"\r").unwrap_or(line))))
    }

    /// Reads more. Whether there was more.
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

/// What was looked at already, and all that follows.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// The frames of Zstandard of a file, one after the other.
struct Frames<R: Read> {
    /// Nothing for a moment only, while the next frame begins.
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
