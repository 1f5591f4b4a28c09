//! Limits of other programs become a document of Diana.
//!
//! An [`Importer`] reads texts ([`SourceText`]) and passes them to the formats of its registry
//! (`formats.rs`). A format is one file there: its reader collects what it needs from each text,
//! and in the end returns an [`Imported`]: entries, and lists of the settings that no entry expresses. The
//! importer writes the document (`document.rs`).
//!
//! It reads no files itself, so a page in a browser can use it.

mod document;
mod formats;
mod importer;
mod manifest;
mod nginx;
mod outcome;
mod source;

pub use formats::{ImportFormat, REGISTRY};
pub use importer::{Counting, ImportResult, Importer};
pub use outcome::{Imported, ImportedEntry, ImportedRule, Note, Notes, RuleDifferences};
pub use source::{Origin, SourceFiles, SourceText};
