//! Requests in the order in which they came.
//!
//! A log has its lines in the order in which requests ended, and each gateway has a log of its own. So the next requests of
//! all logs wait here, until everything that may have come earlier has been read: [`WINDOW`] of the log's own clock, as
//! long as no more than [`MOST`] wait. What comes later than that is judged with those that come then.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use diana_log::{Entry, Mapping, Reader};
use diana_policy::time::{Micros, SECOND};

use super::progress::Progress;
use super::source::{Seen, Source};

/// How long a request may take that is put in its place.
const WINDOW: Micros = 30 * SECOND;

/// Requests that wait at most.
const MOST: usize = 200_000;

/// How often progress is shown, in lines.
const SHOWN: u64 = 1 << 14;

/// The requests of all files.
pub struct Log {
    reader: Reader,
    progress: Progress,
    /// Files that have not begun yet, the first one to begin first.
    later: VecDeque<Source>,
    open: Vec<Source>,
    /// By instant and number.
    waiting: BTreeMap<(Micros, u64), Rc<Entry>>,
    /// Entries that nobody needs any more.
    spare: Vec<Rc<Entry>>,
    /// The latest instant of those that were handed out.
    now: Micros,
    /// What was seen by now.
    pub seen: Seen,
}

impl Log {
    /// The requests of these files.
    ///
    /// # Errors
    /// Which file cannot be read.
    pub fn open(paths: &[PathBuf], mapping: Mapping) -> Result<Log, String> {
        let mut reader = Reader::new(mapping);
        let several = paths.len() > 1;
        let sources = paths.iter().map(|path| Source::new(path, several, &mut reader));
        let mut later = sources.collect::<Result<Vec<_>, _>>()?;
        later.sort_by_key(|source| source.clock);
        let mut log = Log {
            reader,
            progress: Progress::new(paths),
            later: later.into(),
            open: Vec::new(),
            waiting: BTreeMap::new(),
            spare: Vec::new(),
            now: 0,
            seen: Seen::default(),
        };
        log.begin_next()?;
        Ok(log)
    }

    /// The next request.
    ///
    /// # Errors
    /// Which file cannot be read.
    pub fn next(&mut self) -> Result<Option<Rc<Entry>>, String> {
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

    /// Takes an entry back that is needed no more.
    pub fn give_back(&mut self, entry: Rc<Entry>) {
        self.spare.push(entry);
    }

    /// Takes what is shown of its progress off the terminal.
    pub fn clear(&self) {
        self.progress.clear();
    }

    /// Whether nothing can come any more that came earlier than the first one that waits.
    fn is_ready(&self) -> bool {
        let is_first = |((at, _), _): (&(Micros, u64), _)| {
            self.clock().is_some_and(|clock| at.saturating_add(WINDOW) <= clock)
        };
        self.waiting.len() >= MOST || self.waiting.first_key_value().is_some_and(is_first)
    }

    /// The instant to which all open files have come.
    fn clock(&self) -> Option<Micros> {
        self.open.iter().map(|source| source.clock).min()
    }

    /// The file that is behind all others.
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
