//! The input files of a command.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::text::plain;

/// Maximum size of a file with rules in bytes, the same as in the filter.
const MOST_BYTES: u64 = 1 << 20;

/// The files that a command reads.
#[derive(Debug, Clone, Copy)]
pub struct WantedFiles {
    /// The ends of their names in a folder.
    pub ends: &'static [&'static str],
    /// Their maximum size in bytes, and the reason for it.
    pub most: (u64, &'static str),
}

/// Files that may have rules.
pub const RULES: WantedFiles = WantedFiles {
    ends: &["yaml", "yml", "json"],
    most: (MOST_BYTES, "which is more than the filter reads"),
};

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 32;

/// The content of a file, or an error.
#[derive(Debug)]
pub struct Input {
    /// Its name with control characters escaped.
    pub name: String,
    /// Its text, or an error.
    pub text: Result<String, String>,
    /// Whether it was found in a folder, and so may have no rules.
    pub is_found: bool,
}

/// Reads a file, all files of a folder that may have rules, or standard input.
pub fn read(path: &Path) -> Vec<Input> {
    let mut inputs = Vec::new();
    read_each(path, RULES, &mut |input| inputs.push(input));
    inputs
}

/// Reads a file, the wanted files of a folder one by one, or standard input.
pub fn read_each(path: &Path, wanted: WantedFiles, visit: &mut dyn FnMut(Input)) {
    let name = plain(&path.to_string_lossy());
    if path == Path::new("-") {
        let text = bounded(io::stdin().lock(), wanted.most).and_then(text);
        return visit(Input { name: "standard input".into(), text, is_found: false });
    }
    let file = |path: &Path| open(path, wanted.most).and_then(text);
    if !path.is_dir() {
        return visit(Input { name, text: file(path), is_found: false });
    }
    let mut files = Vec::new();
    let listed = list(path, MAX_DEPTH, wanted.ends, &mut files);
    files.sort();
    for path in files {
        let name = plain(&path.to_string_lossy());
        visit(Input { name, text: file(&path), is_found: true });
    }
    if let Err(error) = listed {
        visit(Input { name, text: Err(error.to_string()), is_found: false });
    }
}

fn list(folder: &Path, depth: usize, ends: &[&str], files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Links to folders are not followed, since they may form cycles.
        if entry.file_type()?.is_dir() {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if depth > 0 && !is_hidden {
                list(&path, depth - 1, ends, files)?;
            }
        } else if path.extension().is_some_and(|end| ends.iter().any(|it| end == *it)) {
            files.push(path);
        }
    }
    Ok(())
}

/// The content of a file with rules, unless it exceeds the maximum size.
pub fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    open(path, RULES.most)
}

fn open(path: &Path, most: (u64, &str)) -> Result<Vec<u8>, String> {
    File::open(path).map_err(|error| error.to_string()).and_then(|file| bounded(file, most))
}

fn bounded(from: impl Read, (most, why): (u64, &str)) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("more than {most} bytes, {why}"));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        format!("found a byte that is not UTF-8 at offset {}", error.utf8_error().valid_up_to())
    })
}
