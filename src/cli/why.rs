//! `diana why`: shows the explanation in a response as a table.

use std::io::{self, Write};

use serde_json::{Deserializer, Value};

use crate::arguments::{ReportFormat, WhyArguments};
use crate::exit::Exit;
use crate::explanation;
use crate::input;
use crate::text::plain;

/// Shows the first explanation in a text.
pub fn run(why: &WhyArguments, out: &mut dyn Write) -> io::Result<Exit> {
    for input in input::read(&why.file) {
        let text =
            input.text.map_err(|error| io::Error::other(format!("{}: {error}", input.name)))?;
        if let Some(rules) = find(&text) {
            match why.format {
                ReportFormat::Text => explanation::write(&rules, out)?,
                ReportFormat::Json => writeln!(out, "{:#}", Value::Array(rules))?,
            }
            return Ok(Exit::Fine);
        }
    }
    writeln!(
        io::stderr(),
        "diana: {}: no explanation found; expected a response with the header of `explain`, as `curl -i` prints it if the \
         request has the operators' token, or the JSON of `diana explain`",
        plain(&why.file.to_string_lossy())
    )?;
    Ok(Exit::Unusable)
}

/// The rules of the first explanation in a text: a list of objects, each with the name of a rule.
fn find(text: &str) -> Option<Vec<Value>> {
    let starts = text.match_indices('[').map(|(start, _)| start);
    let mut lists = starts.filter_map(|start| {
        let list = Deserializer::from_str(text.get(start..)?).into_iter::<Vec<Value>>().next();
        list?.ok()
    });
    lists.find(|rules| {
        let is_rule = |rule: &Value| rule.get("rule").is_some() || rule.get("more").is_some();
        !rules.is_empty() && rules.iter().all(is_rule)
    })
}
