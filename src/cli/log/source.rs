//! One file of a log, or standard input.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use diana_policy::time::{Micros, SECOND};
use diana_replay::{LogEntry, LogReader};

use super::lines::{LogLine, LogLines};
use super::progress::Progress;
use crate::text::plain;

/// Number of bad lines in the output, and bytes of each.
const SHOWN: usize = 3;
const SHOWN_BYTES: usize = 200;

/// Lines at the beginning of a file that are searched for its first instant.
const PEEKED: usize = 1000;

/// Statistics of all files.
#[derive(Debug)]
pub struct LogSummary {
    /// The number of lines.
    pub lines: u64,
    /// The number of lines without a request.
    pub bad: u64,
    /// The first of those lines.
    pub examples: Vec<Bad>,
    /// The number of requests that were read too late to be sorted, and so are processed late.
    pub late: u64,
    /// Their maximum delay in ticks.
    pub latest: Micros,
    /// Files that could not be read completely, each with the reason.
    pub broken: Vec<(String, String)>,
    /// Whether all requests arrived at whole seconds.
    pub whole_seconds: bool,
    /// Whether any line contains the duration of its request.
    pub tells_durations: bool,
}

impl LogSummary {
    /// Notes about the log, one line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> =
            self.broken.iter().map(|(file, why)| format!("{file}: {why}")).collect();
        if self.bad > 0 {
            let (bad, lines) = (self.bad, self.lines);
            notes.push(format!("{bad} of {lines} lines are not requests; the first:"));
            notes.extend(self.examples.iter().map(|bad| format!("  {bad}")));
        }
        if self.late > 0 {
            notes.push(format!(
                "{} requests are too far out of order in the log and are replayed up to {} s late",
                self.late,
                self.latest.div_ceil(SECOND)
            ));
        }
        notes
    }
}

/// A line without a request.
#[derive(Debug)]
pub struct Bad {
    /// Its file.
    pub file: String,
    /// Its number in the file, from one.
    pub line: u64,
    /// The reason.
    pub why: &'static str,
    /// Its beginning with control characters escaped.
    pub text: String,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bad { file, line, why, text } = self;
        let begin = if text.is_empty() { "" } else { ": " };
        write!(f, "{file}:{line}: {why}{begin}{text}")
    }
}

impl Default for LogSummary {
    fn default() -> LogSummary {
        LogSummary {
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

/// A file of a log.
pub struct LogFile {
    path: PathBuf,
    lines: Option<LogLines>,
    /// The arrival of the latest request so far, or of the first one.
    pub clock: Micros,
}

impl LogFile {
    /// A file. If it is one of `several`, its first instant is read.
    ///
    /// # Errors
    /// The file is unreadable.
    pub fn new(path: &Path, several: bool, reader: &mut LogReader) -> Result<LogFile, String> {
        let mut source = LogFile { path: path.into(), lines: None, clock: 0 };
        // A pipe cannot be read twice.
        if several && path.is_file() {
            let wrong = |error: io::Error| format!("{}: {error}", source.name());
            let mut lines = File::open(path).and_then(LogLines::new).map_err(wrong)?;
            source.clock = first_instant(&mut lines, reader);
        }
        Ok(source)
    }

    /// Its name with control characters escaped.
    pub fn name(&self) -> String {
        match self.is_standard_input() {
            true => "standard input".into(),
            false => plain(&self.path.to_string_lossy()),
        }
    }

    fn is_standard_input(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The file is unreadable.
    pub fn open(&mut self, progress: &Progress) -> io::Result<()> {
        self.lines = Some(match self.is_standard_input() {
            true => LogLines::new(progress.counted(io::stdin()))?,
            false => LogLines::new(progress.counted(File::open(&self.path)?))?,
        });
        Ok(())
    }

    /// Reads the next line with a request. Returns false if there is none.
    pub fn next(
        &mut self,
        reader: &mut LogReader,
        entry: &mut LogEntry,
        seen: &mut LogSummary,
    ) -> bool {
        loop {
            let Some(lines) = &mut self.lines else { return false };
            let number = lines.number + 1;
            let (why, shown) = match lines.next() {
                Ok(None) => return false,
                Err(error) => {
                    let why = format!("cannot be read beyond line {number}: {error}");
                    seen.broken.push((self.name(), why));
                    return false;
                }
                Ok(Some(LogLine::TooLong)) => ("longer than 1 MiB", String::new()),
                // Logs may have empty lines at their end.
                Ok(Some(LogLine::Text(line))) if line.trim_ascii().is_empty() => continue,
                Ok(Some(LogLine::Text(line))) => match reader.read(line, seen.lines, entry) {
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

/// The arrival of the first request in the first lines. Zero if they have none.
fn first_instant(lines: &mut LogLines, reader: &mut LogReader) -> Micros {
    let mut entry = LogEntry::default();
    for _ in 0..PEEKED {
        // Errors are reported when the file is read.
        let Ok(Some(line)) = lines.next() else { break };
        if let LogLine::Text(line) = line
            && reader.read(line, 0, &mut entry).is_ok()
        {
            return entry.at;
        }
    }
    0
}
