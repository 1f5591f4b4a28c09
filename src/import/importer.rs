//! Reads texts by all formats, and writes one document.

#[cfg(test)]
pub(crate) mod tests;

use hashbrown::HashMap;

use crate::comparison::{self, ModelComparison};
use crate::document::{self, DocumentWriter};
use crate::formats::{FormatReader, ImportFormat, REGISTRY};
use crate::manifest;
use crate::model::LimiterModel;
use crate::outcome::{Imported, ImportedEntry, ImportedObject, ImportedRule, Notes};
use crate::source::{Origin, SourceFiles, SourceText};

/// Where the new rules count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// In each gateway, as most originals count in each of their processes.
    PerGateway,
    /// In all gateways together, with the total of this number of processes of the original.
    Fleet(u32),
}

/// Reads texts.
pub struct Importer {
    readers: Vec<ActiveReader>,
    gaps: Notes,
}

struct ActiveReader {
    format: &'static ImportFormat,
    reader: Box<dyn FormatReader>,
    /// Whether a text had something for this format.
    has_read: bool,
}

/// The result of an import.
#[derive(Debug)]
pub struct ImportResult {
    /// The names of the formats that were found.
    pub formats: Vec<&'static str>,
    /// The document. It passes `diana check`.
    pub document: String,
    /// The entries in the document.
    pub entries: Vec<ImportedEntry>,
    /// Objects with several rules, and how their rules together compare with the original.
    pub objects: Vec<ComparedObject>,
    /// Limits and settings that the document lacks, in the order of files and lines.
    pub gaps: Notes,
    /// Settings that never had an effect.
    pub inert: Notes,
}

/// The comparison of an object.
#[derive(Debug)]
pub struct ComparedObject {
    /// Its name for readers.
    pub title: String,
    /// The comparison of all of its rules together.
    pub comparison: ModelComparison,
    /// The model of the original.
    pub model: Box<dyn LimiterModel>,
}

/// Maximum number of empty lines that give files in ConfigMaps their places.
const MOST_PADDING: usize = 64 << 20;

/// Maximum number of comparisons of different rules.
const MOST_COMPARED: usize = 200;

/// The files of a ConfigMap, which are read one by one.
struct InConfigMap;

impl SourceFiles for InConfigMap {
    fn included(&self, _: &str, _: &str) -> Result<Vec<SourceText>, String> {
        Err("a ConfigMap has this file; of the others only those of its own keys are read".into())
    }
}

/// Comparisons of rules with equal numbers are made once.
struct Comparisons {
    known: HashMap<String, Option<ModelComparison>>,
    is_off: bool,
    /// The number of decisions that are left for short examples.
    search: usize,
}

impl Comparisons {
    fn new(is_off: bool) -> Comparisons {
        Comparisons { known: HashMap::new(), is_off, search: comparison::MOST_SEARCHED }
    }
}

impl Comparisons {
    fn of(
        &mut self,
        rules: &[&ImportedRule],
        model: &dyn LimiterModel,
        unrounded: Option<&dyn LimiterModel>,
        processes: u32,
    ) -> Option<ModelComparison> {
        if self.is_off {
            return None;
        }
        // Models that differ may have the same rules.
        let text = format!("{processes}\n{model:?}\n{}", document::of_rules(rules));
        if let Some(known) = self.known.get(&text) {
            return known.clone();
        }
        if self.known.len() == MOST_COMPARED {
            return None;
        }
        let made = comparison::compare(rules, model, unrounded, processes, &mut self.search);
        self.known.insert(text, made.clone());
        made
    }

    fn object(
        &mut self,
        object: ImportedObject,
        entries: &[ImportedEntry],
    ) -> Option<ComparedObject> {
        let ImportedObject { title, rules: origins, model, unrounded } = object;
        let all: Vec<_> = entries.iter().flat_map(|entry| &entry.rules).collect();
        let mut rules = Vec::new();
        for (number, origin) in origins.iter().enumerate() {
            // Several limits on one line have one origin.
            if origins.iter().take(number).any(|earlier| earlier == origin) {
                continue;
            }
            rules.extend(all.iter().copied().filter(|rule| rule.origin == *origin));
        }
        // Without one of them it is another object.
        if rules.len() != origins.len() {
            return None;
        }
        let processes = rules.first()?.processes;
        if rules.iter().any(|rule| rule.processes != processes) {
            return None;
        }
        let comparison = self.of(&rules, &*model, unrounded.as_deref(), processes)?;
        Some(ComparedObject { title, comparison, model })
    }
}

impl Importer {
    /// An importer of one format, or of all.
    #[must_use]
    pub fn new(only: Option<&'static ImportFormat>) -> Importer {
        let formats = REGISTRY.iter().filter(|it| only.is_none_or(|only| only.name == it.name));
        let active = |format: &'static ImportFormat| ActiveReader {
            format,
            reader: (format.reader)(),
            has_read: false,
        };
        Importer { readers: formats.map(active).collect(), gaps: Notes::default() }
    }

    /// Reads a text, and those in ConfigMaps of it.
    pub fn read(&mut self, text: &SourceText, files: &dyn SourceFiles) {
        for inner in self.read_one(text, files) {
            self.read_one(&inner, &InConfigMap);
        }
    }

    /// Reads a text. Returns the files in its ConfigMaps.
    fn read_one(&mut self, text: &SourceText, files: &dyn SourceFiles) -> Vec<SourceText> {
        let Importer { readers, gaps } = self;
        let (mut inner, mut unread, mut padding) = (Vec::new(), Vec::new(), MOST_PADDING);
        if let Some(one) = readers.iter_mut().find_map(|one| {
            let takes = one.reader.text(text, files);
            takes.then_some(one)
        }) {
            one.has_read = true;
            return inner;
        }
        let mut visit = |object: &manifest::ManifestObject| {
            for one in readers.iter_mut() {
                one.has_read |= one.reader.object(object);
            }
            for (Origin { file, line }, text) in manifest::inner_files(object) {
                // The text of a block begins below its key.
                match padding.checked_sub(line) {
                    Some(left) => {
                        padding = left;
                        let text = "\n".repeat(line) + text;
                        inner.push(SourceText { name: file, text });
                    }
                    None => unread.push(Origin { file, line }),
                }
            }
        };
        manifest::read(text, &mut visit, &mut |origin, message| {
            gaps.add(origin, "this document", message);
        });
        for origin in unread {
            let reason = "is one of too many files in ConfigMaps; import it by itself";
            gaps.add(origin, "this file", reason);
        }
        inner
    }

    /// Writes the document, and compares its rules with the originals.
    #[must_use]
    pub fn finish(self, counting: Counting) -> ImportResult {
        self.write(counting, Comparisons::new(false))
    }

    /// Writes the document without comparisons.
    #[must_use]
    pub fn convert(self, counting: Counting) -> ImportResult {
        self.write(counting, Comparisons::new(true))
    }

    fn write(self, counting: Counting, mut comparisons: Comparisons) -> ImportResult {
        let Importer { readers, mut gaps } = self;
        let (mut formats, mut inert) = (Vec::new(), Notes::default());
        let mut objects = Vec::new();
        let mut writer = DocumentWriter::new();
        for ActiveReader { format, mut reader, has_read } in readers {
            if let Counting::Fleet(processes) = counting {
                reader.processes(processes);
            }
            if has_read {
                formats.push(format.name);
            }
            let Imported { mut entries, more, objects: whole, gaps: own, inert: without } =
                reader.finish();
            for rule in entries.iter_mut().flat_map(|entry| &mut entry.rules) {
                document::count(rule, counting);
                let Some(model) = rule.model.take() else { continue };
                let unrounded = rule.unrounded.take();
                let processes = rule.processes;
                rule.comparison =
                    comparisons.of(&[&*rule], &*model, unrounded.as_deref(), processes);
                rule.model = Some(model);
            }
            for object in whole.into_iter().take(MOST_COMPARED) {
                objects.extend(comparisons.object(object, &entries));
            }
            gaps.append(own);
            inert.append(without);
            entries.into_iter().for_each(|entry| writer.add(entry, &mut gaps));
            writer.skip(more);
        }
        // First, so that a full list has it.
        let mut first = Notes::default();
        let (document, entries) = writer.finish(&mut first);
        first.append(gaps);
        ImportResult {
            formats,
            document,
            entries,
            objects,
            gaps: first.sorted(),
            inert: inert.sorted(),
        }
    }
}
