//! Files that other files include.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};

use diana_import::{SourceFiles, SourceText};

use crate::input;
use crate::text::plain;

/// The file system.
pub struct Disk;

impl SourceFiles for Disk {
    fn included(&self, pattern: &str, from: &str) -> Result<Vec<SourceText>, String> {
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        let pattern = folder.join(pattern);
        let paths = match pattern.to_string_lossy().contains('*') {
            true => matching(&pattern).map_err(|error| error.to_string())?,
            false => vec![pattern],
        };
        let read = |path: PathBuf| {
            // A device or a pipe would not end.
            if !path.is_file() {
                return Err(format!("{}: no such file", plain(&path.to_string_lossy())));
            }
            let bytes = input::bytes(&path)?;
            let name: Rc<str> = plain(&path.to_string_lossy()).into();
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| format!("{name}: found a byte that is not UTF-8"))?;
            Ok(SourceText { name, text })
        };
        paths.into_iter().map(read).collect()
    }
}

/// The files of a pattern with `*` in its last part, in the order of their names.
fn matching(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = match pattern.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && fits(&name, &entry.file_name().to_string_lossy()) {
            found.push(folder.join(entry.file_name()));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns true if a name fits a pattern in which each `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = left.get(at + part.len()..).unwrap_or_default();
    }
    left.ends_with(end)
}
