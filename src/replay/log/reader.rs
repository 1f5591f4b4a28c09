//! Reads lines of any format. The first byte of a line shows its format.

use std::rc::Rc;

use super::columns::Columns;
use super::entry::LogEntry;
use super::fields::FieldMapping;
use super::{json, text};

#[cfg(test)]
mod tests;

/// Reads the lines of a log.
pub struct LogReader {
    mapping: Rc<FieldMapping>,
    columns: Columns,
}

impl LogReader {
    /// A reader of logs that have some fields under other names, by a mapping.
    #[must_use]
    pub fn new(mapping: FieldMapping) -> LogReader {
        LogReader { mapping: Rc::new(mapping), columns: Columns::default() }
    }

    /// Reads a line into an entry, which gets the number of the line.
    ///
    /// # Errors
    /// Why the line has no request.
    pub fn read(
        &mut self,
        line: &[u8],
        number: u64,
        entry: &mut LogEntry,
    ) -> Result<(), &'static str> {
        entry.begin(number, &self.mapping);
        match line.first() {
            Some(b'{') => json::read(line, &self.mapping, entry),
            _ => text::read(line, &mut self.columns, &self.mapping, entry),
        }
    }
}
