//! Reads texts by all formats, and writes one document.

use crate::document::DocumentWriter;
use crate::formats::{FormatReader, ImportFormat, REGISTRY};
use crate::manifest;
use crate::outcome::{Imported, ImportedEntry, Notes};
use crate::source::{SourceFiles, SourceText};

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
    /// Limits and settings that the document lacks, in the order of files and lines.
    pub gaps: Notes,
    /// Settings that never had an effect.
    pub inert: Notes,
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

    /// Reads a text.
    pub fn read(&mut self, text: &SourceText, files: &dyn SourceFiles) {
        let Importer { readers, gaps } = self;
        if let Some(one) = readers.iter_mut().find_map(|one| {
            let takes = one.reader.text(text, files);
            takes.then_some(one)
        }) {
            one.has_read = true;
            return;
        }
        let mut visit = |object: &manifest::ManifestObject| {
            for one in readers.iter_mut() {
                one.has_read |= one.reader.object(object);
            }
        };
        manifest::read(text, &mut visit, &mut |origin, message| {
            gaps.add(origin, "this document", message);
        });
    }

    /// Writes the document.
    #[must_use]
    pub fn finish(self, counting: Counting) -> ImportResult {
        let Importer { readers, mut gaps } = self;
        let (mut formats, mut inert) = (Vec::new(), Notes::default());
        let mut writer = DocumentWriter::new(counting);
        for ActiveReader { format, reader, has_read } in readers {
            if has_read {
                formats.push(format.name);
            }
            let Imported { entries, gaps: own, inert: without } = reader.finish();
            gaps.append(own);
            inert.append(without);
            entries.into_iter().for_each(|entry| writer.add(entry, &mut gaps));
        }
        let (document, entries) = writer.finish(&mut gaps);
        ImportResult { formats, document, entries, gaps: gaps.sorted(), inert: inert.sorted() }
    }
}
