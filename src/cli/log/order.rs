//! Sorts requests by arrival.
//!
//! A log has its lines in the order in which requests ended, and each gateway has its own log. So
//! the next requests of all logs wait here until all earlier ones must have been read: for
//! [`WINDOW`] of the log's clock, and at most [`MOST`] requests. A request with a longer duration
//! is processed late.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use diana_policy::time::{Micros, SECOND};
use diana_replay::{FieldMapping, LogEntry, LogReader};

use super::progress::Progress;
use super::source::{LogFile, LogSummary};

/// Maximum duration of a request that is sorted correctly.
const WINDOW: Micros = 30 * SECOND;

/// Maximum number of waiting requests.
const MOST: usize = 200_000;

/// Lines between updates of the progress bar.
const SHOWN: u64 = 1 << 14;

/// The requests of all files.
pub struct AccessLog {
    reader: LogReader,
    progress: Progress,
    /// Unopened files, in the order of their first requests.
    later: VecDeque<LogFile>,
    open: Vec<LogFile>,
    /// By arrival and sequence number.
    waiting: BTreeMap<(Micros, u64), Rc<LogEntry>>,
    /// Unused entries for reuse.
    spare: Vec<Rc<LogEntry>>,
    /// The latest arrival of the requests so far.
    now: Micros,
    /// Statistics of the requests so far.
    pub seen: LogSummary,
}

impl AccessLog {
    /// The requests of these files.
    ///
    /// # Errors
    /// The file that is unreadable.
    pub fn open(paths: &[PathBuf], mapping: FieldMapping) -> Result<AccessLog, String> {
        let mut reader = LogReader::new(mapping);
        let several = paths.len() > 1;
        let sources = paths.iter().map(|path| LogFile::new(path, several, &mut reader));
        let mut later = sources.collect::<Result<Vec<_>, _>>()?;
        later.sort_by_key(|source| source.clock);
        let mut log = AccessLog {
            reader,
            progress: Progress::new(paths),
            later: later.into(),
            open: Vec::new(),
            waiting: BTreeMap::new(),
            spare: Vec::new(),
            now: 0,
            seen: LogSummary::default(),
        };
        log.begin_next()?;
        Ok(log)
    }

    /// The next request.
    ///
    /// # Errors
    /// The file that is unreadable.
    pub fn next(&mut self) -> Result<Option<Rc<LogEntry>>, String> {
        while !self.is_ready() {
            let Some(first) = self.first() else { break };
            self.read(first);
            while let Some(later) = self.later.front()
                && self.clock().is_none_or(|now| later.clock <= now)
            {
                self.begin_next()?;
            }
        }
        let Some((_, mut entry)) = self.waiting.pop_first() else {
            self.progress.clear();
            return Ok(None);
        };
        if entry.at < self.now {
            self.seen.late += 1;
            self.seen.latest = self.seen.latest.max(self.now - entry.at);
            Rc::get_mut(&mut entry).into_iter().for_each(|entry| entry.at = self.now);
        }
        self.now = entry.at;
        Ok(Some(entry))
    }

    /// Takes an unused entry for reuse.
    pub fn recycle(&mut self, entry: Rc<LogEntry>) {
        self.spare.push(entry);
    }

    /// Removes the progress bar from the terminal.
    pub fn clear(&self) {
        self.progress.clear();
    }

    /// Returns true if no earlier request than the first waiting one can follow.
    fn is_ready(&self) -> bool {
        let is_first = |((at, _), _): (&(Micros, u64), _)| {
            self.clock().is_some_and(|clock| at.saturating_add(WINDOW) <= clock)
        };
        self.waiting.len() >= MOST || self.waiting.first_key_value().is_some_and(is_first)
    }

    /// The instant that all open files have reached.
    fn clock(&self) -> Option<Micros> {
        self.open.iter().map(|source| source.clock).min()
    }

    /// The file with the earliest clock.
    fn first(&self) -> Option<usize> {
        let numbered = self.open.iter().enumerate();
        numbered.min_by_key(|(_, source)| source.clock).map(|(number, _)| number)
    }

    fn begin_next(&mut self) -> Result<(), String> {
        let Some(mut source) = self.later.pop_front() else { return Ok(()) };
        source.open(&self.progress).map_err(|error| format!("{}: {error}", source.name()))?;
        self.open.push(source);
        Ok(())
    }

    /// Reads the next request of a file.
    fn read(&mut self, number: usize) {
        let Some(source) = self.open.get_mut(number) else { return };
        let mut entry = self.spare.pop().unwrap_or_default();
        if Rc::get_mut(&mut entry).is_none() {
            entry = Rc::default();
        }
        let Some(own) = Rc::get_mut(&mut entry) else { return };
        if !source.next(&mut self.reader, own, &mut self.seen) {
            self.open.remove(number);
            return;
        }
        self.waiting.insert((entry.at, entry.number), entry);
        if self.seen.lines.is_multiple_of(SHOWN) {
            self.progress.show();
        }
    }
}
