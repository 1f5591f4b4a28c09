//! Documents in files, with a snapshot of their reports next to each file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use insta::{Settings, assert_snapshot};

/// The beginning of a line that separates documents in a file.
const HEADING: &str = "##";

/// A document of a file.
struct Document {
    heading: String,
    /// The lines after the heading.
    text: String,
}

/// Compares the result of `report` for each document of each YAML file of a folder with the
/// snapshot next to the file. The arguments are the name of the file, the heading and the text of
/// the document.
pub fn assert_snapshots(folder: &str, report: impl Fn(&str, &str, &str) -> String) {
    let folder = Path::new(folder).canonicalize().unwrap();
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(&folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for file in files(&folder) {
            let name = file.file_stem().and_then(|name| name.to_str()).unwrap();
            let mut reports = String::new();
            for document in documents(&fs::read_to_string(&file).unwrap()) {
                writeln!(reports, "{}", document.heading).unwrap();
                reports += &report(name, &document.heading, &document.text);
            }
            assert_snapshot!(name, reports);
        }
    });
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "yaml"));
    files.sort();
    files
}

fn documents(file: &str) -> Vec<Document> {
    assert!(file.starts_with(HEADING), "the first line is a heading");
    let mut documents: Vec<Document> = Vec::new();
    for line in file.lines() {
        if line.starts_with(HEADING) {
            let heading = line.to_owned();
            documents.push(Document { heading, text: String::new() });
        } else if let Some(document) = documents.last_mut() {
            writeln!(document.text, "{line}").unwrap();
        }
    }
    documents
}
