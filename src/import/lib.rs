//! Limits of other programs become a document of Diana.
//!
//! An [`Importer`] reads texts ([`SourceText`]) and passes them to the formats of its registry
//! (`formats.rs`). A format is one file there: its reader collects what it needs from each text,
//! and in the end returns an [`Imported`]: entries, and lists of the settings that no entry expresses. The
//! importer writes the document (`document.rs`).
//!
//! It reads no files itself, so a page in a browser can use it.

mod buckets;
mod comparison;
mod condition;
mod document;
mod duration;
mod envoy;
mod formats;
mod gateway_routes;
mod importer;
mod ingress_classes;
mod key;
mod manifest;
mod model;
mod nginx;
mod open_requests;
mod outcome;
mod paths;
mod regex;
mod replayed;
mod routes;
mod site;
mod source;
mod traffic;
mod windows;

pub use comparison::{ComparedRequest, ModelComparison};
pub use formats::{ImportFormat, REGISTRY};
pub use importer::{ComparedObject, Counting, ImportResult, Importer};
pub use model::{LimiterModel, ModelDecision};
pub use outcome::{
    Imported, ImportedEntry, ImportedObject, ImportedRule, Note, Notes, RuleDifferences,
};
pub use replayed::RuleReplay;
pub use site::OriginalSite;
pub use source::{Origin, SourceFiles, SourceText};
