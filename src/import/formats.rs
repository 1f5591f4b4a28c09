//! The formats. Each is one file, and a line in [`REGISTRY`].

mod envoy;
mod f5;
mod ingress_nginx;
mod kuadrant;
mod nginx;
mod traefik;
mod traffic_policy;

use crate::manifest::ManifestObject;
use crate::outcome::Imported;
use crate::source::{SourceFiles, SourceText};

/// A format.
pub struct ImportFormat {
    /// Its name, as in `--from`.
    pub name: &'static str,
    /// Makes a reader of it.
    pub(crate) reader: fn() -> Box<dyn FormatReader>,
}

/// All formats. Each text is offered to all of them.
pub static REGISTRY: &[ImportFormat] = &[
    ingress_nginx::FORMAT,
    nginx::FORMAT,
    f5::FORMAT,
    envoy::FORMAT,
    traffic_policy::FORMAT,
    kuadrant::FORMAT,
    traefik::FORMAT,
];

/// Reads the texts of one import. It remembers what it needs, so that memory is bounded by the
/// limits, not by the texts.
pub(crate) trait FormatReader {
    /// Reads an object: a manifest, or a document of YAML or JSON. Returns true if it has, or may
    /// have, limits of this format.
    fn object(&mut self, object: &ManifestObject) -> bool;

    /// Reads a text. Returns false if it is of another format, and so is offered as objects.
    fn text(&mut self, _: &SourceText, _: &dyn SourceFiles) -> bool {
        false
    }

    /// The number of processes of the original that one count of a rule replaces.
    fn processes(&mut self, _: u32) {}

    /// The limits of all texts.
    fn finish(self: Box<Self>) -> Imported;
}
