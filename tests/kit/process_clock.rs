//! The wall clock of a process that a test starts: ahead of the true one, or stopped.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// A wall clock under the control of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    /// Microseconds ahead of the true clock.
    Ahead(i64),
    /// Stopped at this instant, in microseconds of Unix time.
    At(u64),
}

/// The environment of a process with the wall clock in this folder.
pub fn environment(folder: &Path) -> [(&'static str, OsString); 2] {
    [("LD_PRELOAD", library().into()), ("PROCESS_CLOCK", file(folder).into())]
}

/// Sets the wall clock of the process with this folder.
pub fn set(folder: &Path, wall: Wall) {
    let (rate, offset) = match wall {
        Wall::Ahead(ahead) => (1, ahead),
        Wall::At(instant) => (0, instant.cast_signed()),
    };
    let numbers: [i64; 2] = [rate, offset];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    // Written in place, since the process has mapped the file.
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(file(folder));
    file.unwrap().write_all(&bytes).unwrap();
}

/// Microseconds from the true time to the middle of the hour, constant in this process. With a
/// clock that far ahead, no window of an hour or a day ends during a test.
pub fn to_mid_hour() -> i64 {
    const HOUR: i64 = 3_600_000_000;
    static SHIFT: OnceLock<i64> = OnceLock::new();
    *SHIFT.get_or_init(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
        HOUR / 2 - i64::try_from(now).unwrap() % HOUR
    })
}

fn file(folder: &Path) -> PathBuf {
    folder.join("process-clock")
}

fn library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tests.join("../target/tmp");
        fs::create_dir_all(&folder).unwrap();
        let part = folder.join(format!("process-clock-{}.part", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]);
        compiler.arg(tests.join("kit/process_clock.c")).arg("-o").arg(&part);
        // The C compiler is available, since Rust links with it, too.
        let status = compiler.status().expect("there is a C compiler");
        assert!(status.success(), "{compiler:?} failed");
        let path = folder.canonicalize().unwrap().join("process-clock.so");
        // Renamed at the end, since another process may be about to load it.
        fs::rename(part, &path).unwrap();
        path
    })
}
