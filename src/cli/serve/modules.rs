//! The modules, by their path.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use hyper::body::Bytes;
use ring::digest::{SHA256, digest};

use super::log;
use crate::text::plain;

/// Reads each `*.wasm` of a folder.
///
/// # Errors
/// A folder or a file that cannot be read, or a folder without a module.
pub fn read(folder: &Path) -> io::Result<HashMap<String, Bytes>> {
    let about = |path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", plain(&path.to_string_lossy())))
    };
    let mut modules = HashMap::new();
    for entry in fs::read_dir(folder).map_err(|error| about(folder, error))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "wasm") {
            let module = fs::read(&path).map_err(|error| about(&path, error))?;
            let served = served_path(&module);
            log(&format!("{} is served at {served}", plain(&path.to_string_lossy())));
            modules.insert(served, Bytes::from(module));
        }
    }
    if modules.is_empty() {
        return Err(about(folder, io::Error::other("found no *.wasm, expected a module of Diana")));
    }
    Ok(modules)
}

fn served_path(module: &[u8]) -> String {
    let mut path = String::from("/modules/");
    for byte in digest(&SHA256, module).as_ref() {
        // A string takes every write.
        _ = write!(path, "{byte:02x}");
    }
    path + ".wasm"
}
