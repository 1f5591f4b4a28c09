//! Requests of a pasted access log.

use diana_policy::port::{Ending, Pseudo, Request};
use diana_policy::time::{Micros, SECOND};
use diana_replay::{FieldMapping, LogEntry, LogReader, PlainRequest};
use serde_json::{Value, json};

use crate::traffic::{MOST, START};

const MINUTE: Micros = 60 * SECOND;

/// Requests, and a report about the lines.
#[derive(Debug, Default)]
pub struct Pasted {
    /// The requests with their original distances, moved by whole minutes to the start of the
    /// experiment.
    pub visits: Vec<PlainRequest>,
    lines: usize,
    bad: usize,
    why: Option<String>,
}

impl Pasted {
    /// Reads lines.
    ///
    /// # Errors
    /// If there are more than [`MOST`].
    pub fn read(text: &str) -> Result<Pasted, String> {
        let mut pasted = Pasted::default();
        let mut reader = LogReader::new(FieldMapping::default());
        for (number, line) in (1_u64..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let mut entry = LogEntry::default();
            pasted.lines += 1;
            match reader.read(line.as_bytes(), number, &mut entry) {
                Ok(()) => pasted.visits.push(visit(&entry)),
                Err(why) => {
                    pasted.bad += 1;
                    pasted.why.get_or_insert_with(|| format!("line {number}: {why}"));
                }
            }
            if pasted.lines > MOST {
                return Err(format!("the log is too long: at most {MOST} lines are allowed"));
            }
        }
        let first = pasted.visits.iter().map(|visit| visit.at).min().unwrap_or(0);
        let begin = first - first % MINUTE;
        pasted.visits.iter_mut().for_each(|visit| visit.at = visit.at - begin + START);
        Ok(pasted)
    }

    /// The number of lines, how many of them are unreadable, and the error of the first of those.
    pub fn report(&self) -> Value {
        json!({"lines": self.lines, "bad": self.bad, "why": self.why})
    }
}

fn visit(entry: &LogEntry) -> PlainRequest {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pseudo = |which| entry.pseudo(which).map(|bytes| text(&bytes));
    let headers = entry.headers().map(|(name, value)| (text(name), text(value)));
    PlainRequest {
        at: entry.at,
        took: entry.took.unwrap_or(0),
        status: Ending::status(entry).unwrap_or(0),
        address: entry.client(),
        host: pseudo(Pseudo::Authority),
        method: pseudo(Pseudo::Method).unwrap_or_default(),
        path: pseudo(Pseudo::Path).unwrap_or_default(),
        headers: headers.collect(),
        route: entry.route().map(|name| text(&name)),
    }
}
