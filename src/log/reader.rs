//! Reads lines of any format, which each of them shows by how it begins.

use std::rc::Rc;

use crate::columns::Columns;
use crate::entry::Entry;
use crate::fields::Mapping;
use crate::{json, text};

/// What lines are read with.
pub struct Reader {
    mapping: Rc<Mapping>,
    columns: Columns,
}

impl Reader {
    /// Reads logs that have everything where a mapping says.
    #[must_use]
    pub fn new(mapping: Mapping) -> Reader {
        Reader { mapping: Rc::new(mapping), columns: Columns::default() }
    }

    /// Reads a line into an entry of a number, which forgets all else.
    ///
    /// # Errors
    /// Why it tells of no request.
    pub fn read(
        &mut self,
        line: &[u8],
        number: u64,
        entry: &mut Entry,
    ) -> Result<(), &'static str> {
        entry.begin(number, &self.mapping);
        match line.first() {
            Some(b'{') => json::read(line, &self.mapping, entry),
            _ => text::read(line, &mut self.columns, &self.mapping, entry),
        }
    }
}
