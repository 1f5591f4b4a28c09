//! One file of a log, or standard input.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use diana_log::{Entry, Reader};
use diana_policy::time::{Micros, SECOND};

use super::lines::{Line, Lines};
use super::progress::Progress;
use crate::text::plain;

/// Bad lines that are shown, and how much of each.
const SHOWN: usize = 3;
const SHOWN_BYTES: usize = 200;

/// Lines at the beginning of a file that are looked at for its first instant.
const PEEKED: usize = 1000;

/// What was seen of all files.
#[derive(Debug)]
pub struct Seen {
    /// Lines.
    pub lines: u64,
    /// Lines that tell of no request, and the first of them.
    pub bad: u64,
    /// The first of those.
    pub examples: Vec<Bad>,
    /// Requests that came long before others that were written earlier, so that they are judged too late, and by how
    /// much at most.
    pub late: u64,
    /// By how many ticks at most.
    pub latest: Micros,
    /// Files that could not be read to their end, each with why.
    pub broken: Vec<(String, String)>,
    /// Whether no request came within a second.
    pub whole_seconds: bool,
    /// Whether any line tells how long its request took.
    pub tells_durations: bool,
}

impl Seen {
    /// What of the log needs to be known, a line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> =
            self.broken.iter().map(|(file, why)| format!("{file}: {why}")).collect();
        if self.bad > 0 {
            let (bad, lines) = (self.bad, self.lines);
            notes.push(format!("{bad} of {lines} lines tell of no request; the first:"));
            notes.extend(self.examples.iter().map(|bad| format!("  {bad}")));
        }
        if self.late > 0 {
            notes.push(format!(
                "{} requests stand in the log so long after later ones that they are judged up to {} s late",
                self.late,
                self.latest.div_ceil(SECOND)
            ));
        }
        notes
    }
}

/// A line that tells of no request.
#[derive(Debug)]
pub struct Bad {
    /// Its file.
    pub file: String,
    /// Its number in the file, from one.
    pub line: u64,
    /// Why.
    pub why: &'static str,
    /// How it begins, fit to be shown.
    pub text: String,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bad { file, line, why, text } = self;
        let begin = if text.is_empty() { "" } else { ": " };
        write!(f, "{file}:{line}: {why}{begin}{text}")
    }
}

impl Default for Seen {
    fn default() -> Seen {
        Seen {
            lines: 0,
            bad: 0,
            examples: Vec::new(),
            late: 0,
            latest: 0,
            broken: Vec::new(),
            whole_seconds: true,
            tells_durations: false,
        }
    }
}

/// A file.
pub struct Source {
    path: PathBuf,
    lines: Option<Lines>,
    /// How far its clock has come: when the request of its last line came, or that of the first one.
    pub clock: Micros,
}

impl Source {
    /// A file, opened only where it is one among `several`, to see when it begins.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn new(path: &Path, several: bool, reader: &mut Reader) -> Result<Source, String> {
        let mut source = Source { path: path.into(), lines: None, clock: 0 };
        // What is no file cannot be read twice.
        if several && path.is_file() {
            let wrong = |error: io::Error| format!("{}: {error}", source.name());
            let mut lines = File::open(path).and_then(Lines::new).map_err(wrong)?;
            source.clock = first_instant(&mut lines, reader);
        }
        Ok(source)
    }

    /// Its name, fit to be shown.
    pub fn name(&self) -> String {
        match self.is_standard_input() {
            true => "standard input".into(),
            false => plain(&self.path.to_string_lossy()),
        }
    }

    fn is_standard_input(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Opens it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(&mut self, progress: &Progress) -> io::Result<()> {
        self.lines = Some(match self.is_standard_input() {
            true => Lines::new(progress.counted(io::stdin()))?,
            false => Lines::new(progress.counted(File::open(&self.path)?))?,
        });
        Ok(())
    }

    /// Reads the next line that tells of a request. Whether there was one.
    pub fn next(&mut self, reader: &mut Reader, entry: &mut Entry, seen: &mut Seen) -> bool {
        loop {
            let Some(lines) = &mut self.lines else { return false };
            let number = lines.number + 1;
            let (why, shown) = match lines.next() {
                Ok(None) => return false,
                Err(error) => {
                    let why = format!("it breaks off in line {number}: {error}");
                    seen.broken.push((self.name(), why));
                    return false;
                }
                Ok(Some(Line::TooLong)) => ("it is longer than 1 MiB", String::new()),
                // Logs end with a line break, and some have more of them.
                Ok(Some(Line::Text(line))) if line.trim_ascii().is_empty() => continue,
                Ok(Some(Line::Text(line))) => match reader.read(line, seen.lines, entry) {
                    Ok(()) => {
                        seen.lines += 1;
                        seen.whole_seconds &= entry.at.is_multiple_of(SECOND);
                        seen.tells_durations |= entry.took.is_some();
                        self.clock = entry.at;
                        return true;
                    }
                    Err(_) if seen.examples.len() >= SHOWN => ("", String::new()),
                    Err(why) => {
                        let begin = line.get(..SHOWN_BYTES).unwrap_or(line);
                        (why, plain(&String::from_utf8_lossy(begin)))
                    }
                },
            };
            seen.lines += 1;
            seen.bad += 1;
            if seen.examples.len() < SHOWN {
                seen.examples.push(Bad { file: self.name(), line: number, why, text: shown });
            }
        }
    }
}

/// When the first request came, as far as the first lines tell.
fn first_instant(lines: &mut Lines, reader: &mut Reader) -> Micros {
    let mut entry = Entry::default();
    for _ in 0..PEEKED {
        // What is wrong with a file is found when it is read.
        let Ok(Some(line)) = lines.next() else { break };
        if let Line::Text(line) = line
            && reader.read(line, 0, &mut entry).is_ok()
        {
            return entry.at;
        }
    }
    0
}
