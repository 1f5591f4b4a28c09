//! Converts a document to a [`Policy`], or to a list of all its problems.
//!
//! YAML becomes plain [`Tree`](diana_policy::tree::Tree)s, with a separate list of the positions of
//! all nodes. Readers walk them and report unknown content.
//!
//! ```
//! use diana_config::Reader;
//!
//! let text = "limits: [{Url: /, rules: [{actor: all, unit: minute, rpu: 9, algo: TBB}]}]";
//! let problems = Reader::default().policy(text.as_bytes()).unwrap_err().to_string();
//! assert!(problems.starts_with("1:68 limits[0].rules[0].algo: found `TBB`; did you mean `TB`?"));
//!
//! let policy = Reader::default().policy(text.replace("TBB", "TB").as_bytes()).unwrap();
//! assert_eq!(policy.limits[0].rules[0].quota.rpu, 9);
//! ```

pub mod difference;
pub mod outline;
pub mod problem;
pub mod resource;

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
mod time_zone;
mod values;
mod yaml;

pub use advice::about::Advice;
pub use advice::ids as advice_ids;
pub use node_path::ConfigSource;
pub use schema::schema;
pub use time_zone::rule_of as zone_rule;
pub use yaml::scalar::Dialect;

use advice::about::Row;
use problem::Problems;
use report::ProblemReport;

use diana_policy::remote::Own;
use diana_policy::{ModuleKind, Policy};

/// Reads documents for one form of the module.
#[derive(Debug, Default)]
pub struct Reader {
    module: ModuleKind,
    /// The settings of the gateway that reads remote documents.
    own: Option<Own>,
}

impl Reader {
    /// A reader of the configurations of gateways.
    #[must_use]
    pub fn new(module: ModuleKind) -> Reader {
        Reader { module, own: None }
    }

    /// A reader of documents from a configuration server, which cannot contain the keys of `own`.
    #[must_use]
    pub fn remote(own: Own) -> Reader {
        Reader { module: own.module, own: Some(own) }
    }

    /// The policy of a document: YAML or JSON in any form of the reference, or the bytes of a
    /// `google.protobuf.Struct`, which a remote document cannot be.
    ///
    /// # Errors
    /// Every problem of the document.
    pub fn policy(&self, bytes: &[u8]) -> Result<Policy, Problems> {
        if let (None, Some(tree)) = (&self.own, protobuf::read(bytes)) {
            let source = ConfigSource { documents: vec![tree], spans: Vec::new() };
            return self.read(&source).map(|(policy, _)| policy);
        }
        let (policy, _) = self.read(&ConfigSource::read(bytes)?)?;
        Ok(Policy { checksum: checksum(bytes), ..policy })
    }

    /// The policy of a source, which may be a part of a larger text, and the advice that the log of
    /// a gateway has.
    ///
    /// # Errors
    /// Every problem of the source.
    pub fn read(&self, source: &ConfigSource) -> Result<(Policy, Vec<Advice>), Problems> {
        self.advised(source, &[])
    }

    /// As [`Reader::read`], with advice that would be too verbose for a log.
    ///
    /// # Errors
    /// Every problem of the source.
    pub fn check(&self, source: &ConfigSource) -> Result<(Policy, Vec<Advice>), Problems> {
        self.advised(source, advice::ONLY_IN_CHECK)
    }

    fn advised(
        &self,
        source: &ConfigSource,
        more: &[Row],
    ) -> Result<(Policy, Vec<Advice>), Problems> {
        let report = ProblemReport::new(source, self.module, &document::PLACES);
        node::roots(&report).iter().for_each(fields::find_duplicates);
        match document::read(&report, self.own.as_ref(), more) {
            Some(read) if report.is_empty() => Ok(read),
            _ => Err(report.into_problems()),
        }
    }
}

/// The Adler-32 checksum of a text, as [`Policy::checksum`] and the metric `diana_document` have it.
#[must_use]
pub fn checksum(text: &[u8]) -> u32 {
    adler2::adler32_slice(text)
}
