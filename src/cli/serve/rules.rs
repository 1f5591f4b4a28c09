//! The document of rules.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use diana_config::Reader;
use diana_config::problem::{Problem, Problems};
use diana_policy::remote::Own;
use diana_policy::{ModuleKind, Policy, names};
use diana_worker::remote;
use hyper::body::Bytes;
use tokio::sync::watch;

use super::log;
use super::watched::WatchedFiles;
use crate::text::plain;

/// What gateways get.
#[derive(Debug, Clone, Default)]
pub struct Served {
    /// The last document without problems.
    pub document: Option<Document>,
    /// The names of its rules.
    pub rules: Arc<[String]>,
    /// The problems of the file, if its present content is not served.
    pub problems: Option<String>,
    /// The number of contents of the file that were not served.
    pub refused: u64,
}

/// A document that is served.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its text.
    pub text: Bytes,
    /// Its version, as logs of gateways have it. As the value of `etag`, it is in quotes.
    pub version: u64,
}

/// A file of rules.
#[derive(Debug)]
pub struct RulesFile {
    name: String,
    /// The form of the module that reads them.
    module: ModuleKind,
    file: WatchedFiles,
    publish: watch::Sender<Served>,
}

impl RulesFile {
    /// A file that was not read yet.
    pub fn new(path: &Path, module: ModuleKind, publish: watch::Sender<Served>) -> RulesFile {
        let name = plain(&path.to_string_lossy());
        RulesFile { name, module, file: WatchedFiles::new(&[path]), publish }
    }

    /// Reads the file. If it has changed, serves its document or logs its problems.
    pub fn read(&mut self) {
        let Some(content) = self.file.read() else { return };
        let name = &self.name;
        let reader = Reader::remote(Own { module: self.module, ..Own::default() });
        let checked = content.as_ref().map_err(Clone::clone).and_then(|files| {
            let text = files.concat();
            match reader.policy(&text) {
                Ok(policy) => Ok((text, names_of(&policy))),
                Err(problems) => Err(lines(name, &problems)),
            }
        });
        match checked {
            Ok((text, rules)) => {
                let version = remote::version_of(&text);
                let line = format!("{name}: version {version:016x} is served, {}", summary(&rules));
                let document = Some(Document { text: text.into(), version });
                let now: BTreeSet<String> = rules.iter().cloned().collect();
                let refused = self.publish.borrow().refused;
                let served = Served { document, rules: rules.into(), problems: None, refused };
                let before = self.publish.send_replace(served).rules;
                let ended = before.iter().filter(|rule| !now.contains(*rule));
                let ended: Vec<String> = ended.cloned().collect();
                log(&line);
                if !ended.is_empty() {
                    log(&format!("{name}: these rules have ended: {}", names::listed(&ended)));
                }
            }
            Err(problems) => {
                let Served { document, rules, refused, .. } = self.publish.borrow().clone();
                let then = match &document {
                    Some(document) => format!("version {:016x} is still served", document.version),
                    None => "there is nothing to serve, so this server is not ready".into(),
                };
                let (shown, refused) = (Some(problems.clone()), refused + 1);
                let served = Served { document, rules, problems: shown, refused };
                self.publish.send_replace(served);
                log(&format!("{name}: the rules cannot be used; {then}"));
                problems.lines().for_each(log);
            }
        }
    }
}

fn names_of(policy: &Policy) -> Vec<String> {
    let rules = policy.rules();
    rules.map(|rule| rule.name.clone()).collect()
}

/// The number of rules, and the first names.
fn summary(rules: &[String]) -> String {
    match rules.len() {
        0 => "without rules".into(),
        1 => format!("1 rule: {}", names::listed(rules)),
        count => format!("{count} rules: {}", names::listed(rules)),
    }
}

/// A line for each problem, with its position in the file.
fn lines(name: &str, problems: &Problems) -> String {
    let line = |problem: &Problem| {
        let separator = if problem.position.is_some() { ":" } else { ": " };
        format!("{name}{separator}{}\n", plain(&problem.to_string()))
    };
    let more = match problems.more() {
        0 => String::new(),
        more => format!("{name}: and {more} more\n"),
    };
    problems.list().iter().map(line).collect::<String>() + &more
}
