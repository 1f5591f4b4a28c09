//! A progress bar, on terminals only.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::PathBuf;
use std::rc::Rc;

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of reading files.
pub struct Progress {
    bar: ProgressBar,
    /// Bytes read from all files.
    read: Rc<Cell<u64>>,
}

impl Progress {
    /// Begins to read files. Their sizes are usually known.
    pub fn new(paths: &[PathBuf]) -> Progress {
        let size =
            |path: &PathBuf| path.metadata().ok().filter(|it| it.is_file()).map(|it| it.len());
        let sizes: Option<Vec<u64>> = paths.iter().map(size).collect();
        // Draws nothing if standard error is not a terminal.
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

    /// Wraps a file to count its bytes.
    pub fn counted<R: Read>(&self, from: R) -> CountingReader<R> {
        CountingReader { from, read: self.read.clone() }
    }

    /// Updates the progress bar.
    pub fn show(&self) {
        self.bar.set_position(self.read.get());
    }

    /// Removes the progress bar from the terminal.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A file with counted bytes.
pub struct CountingReader<R> {
    from: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
