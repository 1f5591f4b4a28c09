//! `diana schema`: what editors know of rules.

use std::io::{self, Write};

use crate::exit::Exit;

/// Writes the JSON Schema of a configuration.
pub fn run(out: &mut dyn Write) -> io::Result<Exit> {
    let schema = serde_json::to_value(diana_config::schema())?;
    writeln!(out, "{schema:#}")?;
    Ok(Exit::Fine)
}
