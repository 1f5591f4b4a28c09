//! `diana copy`: for containers from an image that has no other program.

use std::path::Path;
use std::{fs, io};

use crate::exit::Exit;
use crate::text::error_at;

/// Copies a file into a folder, under the same name.
pub fn run(file: &Path, folder: &Path) -> io::Result<Exit> {
    let source = fs::read(file).map_err(|error| error_at(file, error))?;
    let name = file.file_name().unwrap_or_default();
    let target = folder.join(name);
    let mut part = target.clone().into_os_string();
    part.push(".part");
    // Renamed, so that no process reads half of it, and a file that is loaded never changes.
    let copied = fs::write(&part, source).and_then(|()| fs::rename(&part, &target));
    copied.map_err(|error| error_at(&target, error))?;
    Ok(Exit::Fine)
}
