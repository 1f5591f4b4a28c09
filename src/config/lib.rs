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
mod instant;
mod mapping;
mod mark;
mod matching;
mod native;
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

use diana_policy::remote::Own;
use diana_policy::{ModuleKind, Policy};

/// Reads a configuration: YAML or JSON in any form of the reference, or the bytes of a
/// `google.protobuf.Struct`.
///
/// # Errors
/// Every problem of the document.
pub fn parse(bytes: &[u8]) -> Result<Policy, Problems> {
    parse_for(bytes, ModuleKind::Wasm)
}

/// As [`parse`], in this form of the module.
///
/// # Errors
/// Every problem of the document.
pub fn parse_for(bytes: &[u8], module: ModuleKind) -> Result<Policy, Problems> {
    if let Some(tree) = protobuf::read(bytes) {
        return policy(
            &ConfigSource { documents: vec![tree], spans: Vec::new(), module },
            None,
            module,
        );
    }
    parse_text(bytes, None, module)
}

/// Reads a document from a configuration server. It cannot contain the keys of `own`.
///
/// # Errors
/// Every problem of the document.
pub fn parse_remote(bytes: &[u8], own: &Own) -> Result<Policy, Problems> {
    parse_text(bytes, Some(own), own.module)
}

/// Reads the configuration in a source, which may be a part of a larger text.
///
/// # Errors
/// Every problem of the source.
pub fn check(source: &ConfigSource) -> Result<(Policy, Vec<Advice>), Problems> {
    check_for(source, source.module)
}

/// As [`check`], in this form of the module.
///
/// # Errors
/// Every problem of the source.
pub fn check_for(
    source: &ConfigSource,
    module: ModuleKind,
) -> Result<(Policy, Vec<Advice>), Problems> {
    advised(source, None, module)
}

/// Reads the configuration in a source as a document from a configuration server, for a gateway
/// with default settings.
///
/// # Errors
/// Every problem of the source.
pub fn check_remote(source: &ConfigSource) -> Result<(Policy, Vec<Advice>), Problems> {
    check_remote_for(source, ModuleKind::Wasm)
}

/// As [`check_remote`], in this form of the module.
///
/// # Errors
/// Every problem of the source.
pub fn check_remote_for(
    source: &ConfigSource,
    module: ModuleKind,
) -> Result<(Policy, Vec<Advice>), Problems> {
    let own = parse_for(b"limits: []", module)?.own();
    advised(source, Some(&own), module)
}

/// The Adler-32 checksum of a text, as [`Policy::checksum`] and the metric `diana_document` have it.
#[must_use]
pub fn checksum(text: &[u8]) -> u32 {
    adler2::adler32_slice(text)
}

fn parse_text(bytes: &[u8], own: Option<&Own>, module: ModuleKind) -> Result<Policy, Problems> {
    let checksum = checksum(bytes);
    policy(&ConfigSource::read(bytes)?, own, module).map(|policy| Policy { checksum, ..policy })
}

fn policy(
    source: &ConfigSource,
    own: Option<&Own>,
    module: ModuleKind,
) -> Result<Policy, Problems> {
    advised(source, own, module).map(|(policy, _)| policy)
}

fn advised(
    source: &ConfigSource,
    own: Option<&Own>,
    module: ModuleKind,
) -> Result<(Policy, Vec<Advice>), Problems> {
    let report = ProblemReport::new(source, module);
    node::roots(&report).iter().for_each(fields::find_duplicates);
    match document::read(&report, own) {
        Some(read) if report.is_empty() => Ok(read),
        _ => Err(report.into_problems()),
    }
}
