//! How far the command has come, shown on terminals only.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::PathBuf;
use std::rc::Rc;

use indicatif::{ProgressBar, ProgressStyle};

/// How far it has come.
pub struct Progress {
    bar: ProgressBar,
    /// Bytes of all files that were read.
    read: Rc<Cell<u64>>,
}

impl Progress {
    /// Begins to read files, whose sizes are mostly known.
    pub fn new(paths: &[PathBuf]) -> Progress {
        let size =
            |path: &PathBuf| path.metadata().ok().filter(|it| it.is_file()).map(|it| it.len());
        let sizes: Option<Vec<u64>> = paths.iter().map(size).collect();
        // It draws nothing where standard error is no terminal.
        let (bar, look) = match sizes {
            Some(sizes) => (
                ProgressBar::new(sizes.iter().sum()),
                "{bar:40} {percent} % of {total_bytes}, {bytes_per_sec}, {eta} left",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {bytes}, {bytes_per_sec}"),
        };
        let look =
            ProgressStyle::with_template(look).unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress { bar: bar.with_style(look), read: Rc::default() }
    }

    /// A file whose bytes count.
    pub fn counted<R: Read>(&self, from: R) -> Counted<R> {
        Counted { from, read: self.read.clone() }
    }

    /// Shows it.
    pub fn show(&self) {
        self.bar.set_position(self.read.get());
    }

    /// Takes it off the terminal.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A file that is read.
pub struct Counted<R> {
    from: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
