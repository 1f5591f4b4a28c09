//! The input files of a command.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::text::plain;

/// Maximum size of a file in bytes, the same as in the filter.
const MOST_BYTES: u64 = 1 << 20;

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
    let name = plain(&path.to_string_lossy());
    if path == Path::new("-") {
        let text = bounded(io::stdin().lock()).and_then(text);
        return vec![Input { name: "standard input".into(), text, is_found: false }];
    }
    if !path.is_dir() {
        return vec![Input { name, text: file(path), is_found: false }];
    }
    let mut files = Vec::new();
    let listed = list(path, MAX_DEPTH, &mut files);
    files.sort();
    let found = files.iter().map(|path| Input {
        name: plain(&path.to_string_lossy()),
        text: file(path),
        is_found: true,
    });
    let mut inputs: Vec<Input> = found.collect();
    if let Err(error) = listed {
        inputs.push(Input { name, text: Err(error.to_string()), is_found: false });
    }
    inputs
}

fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Links to folders are not followed, since they may form cycles.
        if entry.file_type()?.is_dir() {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if depth > 0 && !is_hidden {
                list(&path, depth - 1, files)?;
            }
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
        {
            files.push(path);
        }
    }
    Ok(())
}

fn file(path: &Path) -> Result<String, String> {
    bytes(path).and_then(text)
}

/// The content of a file, unless it exceeds the maximum size.
pub fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    File::open(path).map_err(|error| error.to_string()).and_then(bounded)
}

fn bounded(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("more than {MOST_BYTES} bytes, which is more than the filter reads"));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        format!("found a byte that is not UTF-8 at offset {}", error.utf8_error().valid_up_to())
    })
}
