//! Documents in files, each with its outcome.
//!
//! A document begins with a heading, and may end with steps, after `> ` or `$ `. The outcome of a document or of a step is
//! below it, each line after `< `. A single line stands behind its step, after ` => `. `INSTA_UPDATE=always` writes outcomes.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The beginning of a line that separates documents in a file.
const HEADING: &str = "##";

/// The beginnings of a step.
const STEPS: [&str; 2] = ["> ", "$ "];

/// What separates a step and its outcome.
const BECOMES: &str = " => ";

/// A document of a file.
struct Document {
    heading: String,
    /// The lines after the heading, with steps and without outcomes.
    text: String,
}

/// Compares the outcomes in the text files of a folder with those that `outcomes` makes of each document, by [`outcome`].
/// The arguments are the name of the file, the heading, and the text of the document with its steps.
pub fn assert_outcomes(folder: &str, outcomes: impl Fn(&str, &str, &str) -> String) {
    let updates = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    for file in files(Path::new(folder)) {
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap();
        let written = fs::read_to_string(&file).unwrap();
        let mut found = String::new();
        for Document { heading, text } in documents(&written) {
            writeln!(found, "{heading}").unwrap();
            let lines = text.lines().filter(|line| !is_step(line));
            lines.for_each(|line| writeln!(found, "{line}").unwrap());
            found += &outcomes(name, &heading, &text);
        }
        if updates {
            fs::write(&file, found).unwrap();
        } else {
            assert!(written == found, "{}:\n{}", file.display(), difference(&written, &found));
        }
    }
}

/// The outcome of a step, or of a document if the step is empty, as a file has it.
pub fn outcome(step: &str, outcome: &str) -> String {
    let lines: Vec<&str> = outcome.lines().collect();
    match lines[..] {
        [line] if !step.is_empty() => format!("{step}{BECOMES}{}\n", line.trim_start()),
        _ => {
            let lines = lines.iter().map(|line| format!("< {line}").trim_end().to_owned() + "\n");
            let step = if step.is_empty() { String::new() } else { format!("{step}\n") };
            step + &lines.collect::<String>()
        }
    }
}

fn is_step(line: &str) -> bool {
    STEPS.iter().any(|step| line.starts_with(step))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "txt"));
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
        } else if let Some(document) = documents.last_mut()
            && line != "<"
            && !line.starts_with("< ")
        {
            let step = if is_step(line) { line.split(BECOMES).next() } else { None };
            writeln!(document.text, "{}", step.unwrap_or(line)).unwrap();
        }
    }
    documents
}

/// The lines between the first and the last difference.
fn difference(written: &str, found: &str) -> String {
    let (written, found): (Vec<_>, Vec<_>) = (written.lines().collect(), found.lines().collect());
    let before = written.iter().zip(&found).take_while(|(one, other)| one == other).count();
    let behind = written[before..].iter().rev().zip(found[before..].iter().rev());
    let after = behind.take_while(|(one, other)| one == other).count();
    let marked = |mark: char, lines: &[&str]| {
        let lines = &lines[before..lines.len() - after];
        lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>()
    };
    format!("{} lines, then\n{}{}", before, marked('-', &written), marked('+', &found))
}
