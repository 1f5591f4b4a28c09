//! `diana schema`: the JSON Schema of rules, for editors.

use std::io::{self, Write};

use crate::exit::Exit;

/// Writes the JSON Schema of a configuration.
pub fn run(out: &mut dyn Write) -> io::Result<Exit> {
    writeln!(out, "{:#}", diana_config::schema())?;
    Ok(Exit::Fine)
}
