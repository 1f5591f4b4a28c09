//! `diana schema`: what editors know of rules.

use std::io::{self, Write};

use diana_core::json::tree::json;
use serde_json::Value;

use crate::exit::Exit;

/// Writes the JSON Schema of a configuration.
pub fn run(out: &mut dyn Write) -> io::Result<Exit> {
    let schema: Value = serde_json::from_str(&json(&diana_config::schema()))?;
    writeln!(out, "{schema:#}")?;
    Ok(Exit::Fine)
}
