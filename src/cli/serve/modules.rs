//! The modules, by their path.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use hyper::body::Bytes;
use ring::digest::{SHA256, digest};

use super::log;
use crate::text::{error_at, plain};

/// The ends of their names: wasm modules, and libraries for Envoy's own process.
const ENDS: [&str; 2] = ["wasm", "so"];

/// Reads each `*.wasm` and `*.so` of a folder.
///
/// # Errors
/// A folder or a file that cannot be read, or a folder without a module.
pub fn read(folder: &Path) -> io::Result<HashMap<String, Bytes>> {
    let mut modules = HashMap::new();
    for entry in fs::read_dir(folder).map_err(|error| error_at(folder, error))? {
        let path = entry?.path();
        let end = path.extension().and_then(OsStr::to_str);
        if let Some(end) = end.filter(|end| ENDS.contains(end)) {
            let module = fs::read(&path).map_err(|error| error_at(&path, error))?;
            let served = served_path(&module, end);
            log(&format!("{} is served at {served}", plain(&path.to_string_lossy())));
            modules.insert(served, Bytes::from(module));
        }
    }
    if modules.is_empty() {
        let error = io::Error::other("found no *.wasm and no *.so, expected a module of Diana");
        return Err(error_at(folder, error));
    }
    Ok(modules)
}

fn served_path(module: &[u8], end: &str) -> String {
    let mut path = String::from("/modules/");
    for byte in digest(&SHA256, module).as_ref() {
        // A string takes every write.
        _ = write!(path, "{byte:02x}");
    }
    path + "." + end
}
