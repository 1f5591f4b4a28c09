//! Common to the formats that are imported.

use diana_import::{Counting, Importer, REGISTRY, SourceFiles, SourceText};

/// No text includes a file that there is.
struct NoFiles;

impl SourceFiles for NoFiles {
    fn included(&self, _: &str, _: &str) -> Result<Vec<SourceText>, String> {
        Ok(Vec::new())
    }
}

/// Any text becomes a document that is valid, perhaps without a rule.
pub fn convert(format: &str, input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let format = REGISTRY.iter().find(|it| it.name == format).expect("a format");
    for counting in [Counting::PerGateway, Counting::Fleet(3)] {
        let mut importer = Importer::new(Some(format));
        importer.read(&SourceText { name: "a".into(), text: text.into() }, &NoFiles);
        let result = importer.finish(counting);
        if !result.entries.is_empty() {
            let read = diana_config::Reader::default().policy(result.document.as_bytes());
            assert!(read.is_ok(), "{}\n{}", result.document, read.unwrap_err());
        }
    }
}
