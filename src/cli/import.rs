//! `diana import`: the limits of other programs as rules.

mod disk;
mod show;

use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;

use diana_import::{Counting, ImportResult, Importer, Notes, Origin, REGISTRY, SourceText};

use diana_replay::FieldMapping;

use crate::arguments::{ImportArguments, ReportFormat};
use crate::exit::Exit;
use crate::input::{self, Input, WantedFiles};
use crate::log::AccessLog;
use crate::text::error_at;
use disk::Disk;

/// Files that may have limits.
const WANTED: WantedFiles = WantedFiles {
    ends: &["yaml", "yml", "json", "conf", "toml"],
    most: (512 << 20, "which is more than one import reads; split it by namespace"),
};

/// Imports files and reports what differs.
pub fn run(arguments: &ImportArguments, out: &mut dyn Write) -> io::Result<Exit> {
    let only = REGISTRY.iter().find(|format| Some(format.name) == arguments.from.as_deref());
    let mut importer = Importer::new(only);
    let mut unreadable = Notes::default();
    for path in &arguments.files {
        input::read_each(path, WANTED, &mut |Input { name, text, .. }| {
            let name: Rc<str> = name.into();
            match text {
                Ok(text) => importer.read(&SourceText { name, text }, &Disk),
                Err(why) => unreadable.add(Origin { file: name, line: 1 }, "this file", why),
            }
        });
    }
    let counting = arguments.fleet.map_or(Counting::PerGateway, Counting::Fleet);
    let mut result = importer.finish(counting);
    result.gaps.append(unreadable);
    let is_usable = !result.formats.is_empty();
    if let Some(path) = arguments.output.as_ref().filter(|_| is_usable) {
        std::fs::write(path, &result.document).map_err(|error| error_at(path, error))?;
    }
    match (arguments.format, &arguments.output) {
        (ReportFormat::Json, _) => show::json(&result, out)?,
        (ReportFormat::Text, Some(_)) => show::text(&result, counting, out)?,
        (ReportFormat::Text, None) => {
            if is_usable {
                out.write_all(result.document.as_bytes())?;
                out.flush()?;
            }
            show::text(&result, counting, &mut io::stderr())?;
        }
    }
    let exit = exit(&result);
    match arguments.replay.as_slice() {
        [] => Ok(exit),
        logs => replay(&mut result, logs, arguments.output.is_some(), exit, out),
    }
}

/// Compares decisions about the requests of logs.
fn replay(
    result: &mut ImportResult,
    logs: &[PathBuf],
    is_report: bool,
    exit: Exit,
    out: &mut dyn Write,
) -> io::Result<Exit> {
    let mut rules = result.replays();
    let mut read = || -> Result<(), String> {
        let mut log = AccessLog::open(logs, FieldMapping::new(&[])?)?;
        while let Some(entry) = log.next()? {
            rules.iter_mut().for_each(|rule| rule.request(&entry));
            log.recycle(entry);
        }
        Ok(())
    };
    if let Err(why) = read() {
        writeln!(io::stderr(), "diana: {why}")?;
        return Ok(Exit::Unusable);
    }
    // Standard output may have the rules.
    match is_report {
        true => show::replayed(&rules, out)?,
        false => show::replayed(&rules, &mut io::stderr())?,
    }
    Ok(exit)
}

fn exit(result: &ImportResult) -> Exit {
    match (result.formats.is_empty(), result.gaps.is_empty()) {
        (true, _) => Exit::Unusable,
        (false, false) => Exit::Incomplete,
        (false, true) => Exit::Fine,
    }
}
