//! Files that are read at intervals.

use std::path::{Path, PathBuf};

use crate::input;

/// The content of some files, or the reason why one of them cannot be read.
pub type Content = Result<Vec<Vec<u8>>, String>;

/// Files that are used together, with their content when they were last read.
#[derive(Debug)]
pub struct WatchedFiles {
    paths: Vec<PathBuf>,
    seen: Option<Content>,
}

impl WatchedFiles {
    /// Files that were not read yet.
    pub fn new(paths: &[&Path]) -> WatchedFiles {
        WatchedFiles { paths: paths.iter().map(Into::into).collect(), seen: None }
    }

    /// Reads the files. Returns their content if it has changed.
    ///
    /// The content is compared, since a mounted ConfigMap or Secret changes by links to other
    /// folders.
    pub fn read(&mut self) -> Option<&Content> {
        let files = self.paths.iter().map(|path| {
            input::bytes(path)
                .map_err(|why| format!("{}: {why}", crate::text::plain(&path.to_string_lossy())))
        });
        let content = Some(files.collect());
        if self.seen == content {
            return None;
        }
        self.seen = content;
        self.seen.as_ref()
    }
}
