//! Converts a document to a [`Policy`], or to a list of all its problems.
//!
//! YAML becomes plain [`Tree`](diana_policy::tree::Tree)s, with a separate list of the positions of
//! all nodes. Readers walk them and report unknown content.

pub mod difference;
pub mod outline;
pub mod problem;

mod actors;
mod addresses;
mod advice;
mod conditions;
mod context;
mod document;
mod entry;
mod fields;
mod headers;
mod hint;
mod mapping;
mod mark;
mod matching;
mod node;
mod node_path;
mod operator;
mod plans;
mod protobuf;
mod redis;
mod remote;
mod report;
mod response;
mod rule;
mod schema;
mod settings;
mod starts;
mod table;
mod time_zone;
mod values;
mod yaml;

pub use advice::Advice;
pub use node_path::ConfigSource;
pub use schema::schema;
pub use time_zone::rule_of as zone_rule;
pub use yaml::scalar::Dialect;

use problem::Problems;
use report::ProblemReport;

use diana_policy::Policy;
use diana_policy::remote::Own;

/// Reads a configuration: YAML or JSON in any form of the reference, or the bytes of a
/// `google.protobuf.Struct`.
///
/// # Errors
/// Every problem of the document.
pub fn parse(bytes: &[u8]) -> Result<Policy, Problems> {
    if let Some(tree) = protobuf::read(bytes) {
        return policy(&ConfigSource { documents: vec![tree], positions: Vec::new() }, None);
    }
    parse_text(bytes, None)
}

/// Reads a document from a configuration server. It cannot contain the keys of `own`.
///
/// # Errors
/// Every problem of the document.
pub fn parse_remote(bytes: &[u8], own: &Own) -> Result<Policy, Problems> {
    parse_text(bytes, Some(own))
}

/// Reads the configuration in a source, which may be a part of a larger text.
///
/// # Errors
/// Every problem of the source.
pub fn check(source: &ConfigSource) -> Result<(Policy, Vec<Advice>), Problems> {
    advised(source, None)
}

/// Reads the configuration in a source as a document from a configuration server, for a gateway
/// with default settings.
///
/// # Errors
/// Every problem of the source.
pub fn check_remote(source: &ConfigSource) -> Result<(Policy, Vec<Advice>), Problems> {
    let own = parse(b"limits: []")?.own();
    advised(source, Some(&own))
}

fn parse_text(bytes: &[u8], own: Option<&Own>) -> Result<Policy, Problems> {
    let checksum = adler2::adler32_slice(bytes);
    policy(&ConfigSource::read(bytes)?, own).map(|policy| Policy { checksum, ..policy })
}

fn policy(source: &ConfigSource, own: Option<&Own>) -> Result<Policy, Problems> {
    advised(source, own).map(|(policy, _)| policy)
}

fn advised(source: &ConfigSource, own: Option<&Own>) -> Result<(Policy, Vec<Advice>), Problems> {
    let report = ProblemReport::new(source);
    node::roots(&report).iter().for_each(fields::find_duplicates);
    match document::read(&report, own) {
        Some(read) if report.is_empty() => Ok(read),
        _ => Err(report.into_problems()),
    }
}
