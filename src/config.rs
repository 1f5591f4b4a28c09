//! From a document to a [`Policy`], or to every problem that the document has.
//!
//! YAML becomes plain [`Tree`]s; readers walk them and report what they do not
//! understand; only then is the text read again to find the line and column of each problem.

pub mod policy;
pub mod problem;

mod actors;
mod advice;
mod algo;
mod condition;
mod context;
mod document;
mod duplicate;
mod entry;
mod except;
mod fields;
mod hint;
mod keys;
mod locate;
mod matching;
mod name;
mod naming;
mod node;
mod place;
mod protobuf;
mod report;
mod response;
mod rule;
mod settings;
mod text;
mod yaml;
mod zone;

use policy::Policy;
use problem::Problems;
use report::Report;

use crate::tree::Tree;

/// Reads a configuration: YAML or JSON, in any of the forms that the reference describes, or the
/// bytes of a `google.protobuf.Struct`.
///
/// # Errors
/// Every problem that the document has, at once.
pub fn parse(bytes: &[u8]) -> Result<Policy, Problems> {
    if let Some(tree) = protobuf::read(bytes) {
        return read(&[tree], "");
    }
    let text = text::check(bytes)?;
    read(&yaml::documents(text)?, text)
}

fn read(documents: &[Tree], text: &str) -> Result<Policy, Problems> {
    let report = Report::new(documents);
    duplicate::find(&report);
    match document::read(&report) {
        Some(policy) if report.is_empty() => Ok(policy),
        _ => Err(report.into_problems(text)),
    }
}
