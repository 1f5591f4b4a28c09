//! Envoys whose wall clock is wrong.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The environment of a process whose wall clock is as far ahead as a folder says.
pub fn environment(folder: &Path) -> [(&'static str, OsString); 2] {
    [("LD_PRELOAD", library().into()), ("CLOCK_AHEAD", file(folder).into())]
}

/// Writes down how far ahead it is, in microseconds.
pub fn set(folder: &Path, ahead: i64) {
    // In place, since the file is part of the memory of the process.
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(file(folder));
    file.unwrap().write_all(&ahead.to_le_bytes()).unwrap();
}

fn file(folder: &Path) -> PathBuf {
    folder.join("clock-ahead")
}

fn library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let part = folder.join(format!("shifted-clock-{}.part", std::process::id()));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/envoy/harness/shifted_clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", source, "-o"]).arg(&part);
        // Rust links with it too.
        let status = compiler.status().expect("there is a C compiler");
        assert!(status.success(), "{compiler:?} failed");
        let path = folder.join("shifted-clock.so");
        // Others may be about to load it.
        fs::rename(part, &path).unwrap();
        path
    })
}
