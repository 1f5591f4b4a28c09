//! The decision on each request, one line of JSON each.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use diana_limiter::seconds;
use diana_policy::port::{Pseudo, Request};
use diana_replay::{LogEntry, ReplayDecision};
use serde_json::json;

use crate::text::plain;

/// The output file.
pub struct Decisions(BufWriter<Box<dyn Write>>);

impl Decisions {
    /// Creates a file, or uses standard output.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn create(path: &Path) -> Result<Decisions, String> {
        let file: Box<dyn Write> = match path == Path::new("-") {
            true => Box::new(io::stdout()),
            false => {
                let wrong = |error| format!("{}: {error}", plain(&path.to_string_lossy()));
                Box::new(File::create(path).map_err(wrong)?)
            }
        };
        Ok(Decisions(BufWriter::new(file)))
    }

    /// Writes the decision about a request.
    pub fn write(&mut self, entry: &LogEntry, decision: &ReplayDecision) -> io::Result<()> {
        let (name, wait) = match decision {
            ReplayDecision::Admitted => ("admitted", 0),
            ReplayDecision::Held { wait, .. } => ("held", *wait),
            ReplayDecision::Refused(_) if decision.is_ban() => ("banned", 0),
            ReplayDecision::Refused(_) => ("refused", 0),
        };
        let text =
            |which| entry.pseudo(which).map(|text| String::from_utf8_lossy(&text).into_owned());
        let line = json!({
            "time": seconds(entry.at),
            "method": text(Pseudo::Method),
            "path": text(Pseudo::Path),
            "decision": name,
            "rule": decision.rule(),
            "wait": seconds(wait),
        });
        writeln!(self.0, "{line}")
    }

    /// Writes buffered lines.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
