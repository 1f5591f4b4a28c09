//! The result of a format.

use diana_policy::tree::Tree;

use crate::comparison::ModelComparison;
use crate::model::LimiterModel;
use crate::source::Origin;

/// The result of a format.
#[derive(Debug, Default)]
pub struct Imported {
    /// Its entries, in the order of the texts.
    pub entries: Vec<ImportedEntry>,
    /// The number of further entries, for which no document has room.
    pub more: usize,
    /// Objects with several rules.
    pub objects: Vec<ImportedObject>,
    /// Limits and settings that no entry expresses.
    pub gaps: Notes,
    /// Settings that look like limits, and never had an effect.
    pub inert: Notes,
}

/// An entry of the document: one object of the original: its rules apply together.
#[derive(Debug)]
pub struct ImportedEntry {
    /// Where the object begins.
    pub origin: Origin,
    /// Its name for readers, such as `Ingress shop/web`.
    pub title: String,
    /// `Url`, `match`, `unless` and `except`.
    pub keys: Vec<(&'static str, Tree)>,
    /// Its rules.
    pub rules: Vec<ImportedRule>,
}

/// A rule of the document: one limit of the original.
#[derive(Debug)]
pub struct ImportedRule {
    /// Where the limit is.
    pub origin: Origin,
    /// The wanted name. The importer replaces other characters than those of names, and adds a
    /// number if another rule has it.
    pub name: String,
    /// The names and sources of the actors that count, which form the key together. None is `all`.
    pub actors: Vec<(String, Tree)>,
    /// All other keys, such as `unit` and `rpu`.
    pub keys: Vec<(&'static str, Tree)>,
    /// The status of a refusal.
    pub status: u16,
    /// Where the original and Diana may differ.
    pub differences: RuleDifferences,
    /// The comparison of both, which the importer makes.
    pub comparison: Option<ModelComparison>,
    /// Addresses that the original exempts.
    pub exempt: Vec<String>,
    /// Whether it is for some of the requests of its object only.
    pub is_partial: bool,
    /// The number of processes of the original that the rule counts for.
    pub processes: u32,
    /// A model of one process of the original.
    pub model: Option<Box<dyn LimiterModel>>,
    /// The same without the rounding of the original.
    pub unrounded: Option<Box<dyn LimiterModel>>,
}

/// Rules that apply together to requests of the original.
#[derive(Debug)]
pub struct ImportedObject {
    /// Its name for readers.
    pub title: String,
    /// Where each of its rules is.
    pub rules: Vec<Origin>,
    /// The model of one process. A request is one of the partial rule number n if it has the header `x-part-n`.
    pub model: Box<dyn LimiterModel>,
    /// The same without the rounding of the original.
    pub unrounded: Option<Box<dyn LimiterModel>>,
}

/// The three facts in which rate limiters differ most, each of the original and of Diana.
#[derive(Debug, Clone)]
pub struct RuleDifferences {
    /// Do refused requests count?
    pub refused: String,
    /// Does a count belong to a route, an object, a gateway or all gateways?
    pub belongs: String,
    /// What happens without a key?
    pub keyless: String,
}

/// A remark about a line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line.
    pub origin: Origin,
    /// Its subject, such as an annotation with its value.
    pub about: String,
    /// The reason, and the substitute.
    pub reason: String,
}

/// A list of remarks with a maximum length.
#[derive(Debug, Default)]
pub struct Notes {
    list: Vec<Note>,
    more: usize,
}

impl Imported {
    /// Maximum number of entries: more than a document holds.
    pub const MOST: usize = 10_000;

    /// Returns true, and counts an entry, if no document has room for it.
    pub fn has_no_room(&mut self) -> bool {
        let is_full = self.entries.len() >= Imported::MOST;
        self.more += usize::from(is_full);
        is_full
    }
}

impl Notes {
    /// Maximum number of remarks. Further ones are counted.
    pub const MOST: usize = 10_000;

    /// Adds a remark.
    pub fn add(&mut self, origin: Origin, about: impl Into<String>, reason: impl Into<String>) {
        if self.list.len() == Notes::MOST {
            self.more += 1;
        } else {
            self.list.push(Note { origin, about: about.into(), reason: reason.into() });
        }
    }

    /// Adds the remarks of another list.
    pub fn append(&mut self, other: Notes) {
        self.more += other.more;
        for Note { origin, about, reason } in other.list {
            self.add(origin, about, reason);
        }
    }

    /// The same remarks in the order of files and lines, each once.
    #[must_use]
    pub fn sorted(mut self) -> Notes {
        self.list.sort_by(|one, other| one.origin.cmp(&other.origin));
        self.list.dedup();
        self
    }

    /// The remarks.
    #[must_use]
    pub fn list(&self) -> &[Note] {
        &self.list
    }

    /// The number of further remarks.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    /// Returns true if there are no remarks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
