//! `diana schema`: the JSON Schema of rules, for editors, or the resource of Kubernetes.

use std::io::{self, Write};

use crate::exit::Exit;

/// Writes the JSON Schema of a configuration, or the CustomResourceDefinition of its entries.
pub fn run(is_crd: bool, out: &mut dyn Write) -> io::Result<Exit> {
    let schema = if is_crd { diana_config::resource::crd::crd() } else { diana_config::schema() };
    writeln!(out, "{schema:#}")?;
    Ok(Exit::Fine)
}
