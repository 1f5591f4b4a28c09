//! The document of rules.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use diana_config::Reader;
use diana_config::problem::{Problem, Problems};
use diana_policy::remote::Own;
use diana_policy::{ModuleKind, Policy, names};
use diana_worker::remote;
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::log;
use super::order::{DocumentOrder, DocumentTag};
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
    /// The reason why there is no document yet, if it waits for the API server.
    pub waits: Option<String>,
    /// The state of the API server up to which this server has read it.
    pub seen: DocumentOrder,
    /// The newest [`Behind`] request that this server has fulfilled.
    pub confirmed: u64,
}

/// A document that is served.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its text.
    pub text: Bytes,
    /// Its version, as logs of gateways have it, and the versions of its objects.
    pub tag: DocumentTag,
}

/// A request to list the objects of the API server again, since a gateway has a document that this
/// server cannot tell from a newer one.
#[derive(Debug, Clone, Default)]
pub struct Behind {
    /// The number of the request.
    pub number: u64,
    /// The texts that gateways had without a tag, by their versions, with the request for each, and its
    /// time. A list that began after it covers them.
    pub texts: VecDeque<(u64, u64, Instant)>,
    /// What gateways have shown of newer documents.
    pub order: DocumentOrder,
}

/// A file of rules.
#[derive(Debug)]
pub struct RulesFile {
    file: WatchedFiles,
}

impl RulesFile {
    /// A file that was not read yet.
    pub fn new(path: &Path) -> RulesFile {
        RulesFile { file: WatchedFiles::new(&[path]) }
    }

    /// Reads the file. Returns its content if it has changed, or why it cannot be read.
    pub fn read(&mut self) -> Option<Result<Vec<u8>, String>> {
        let content = self.file.read()?;
        Some(content.as_ref().map(|files| files.concat()).map_err(Clone::clone))
    }
}

/// Checks documents, and publishes those without problems.
#[derive(Debug)]
pub struct Publisher {
    /// The name of the file of rules.
    name: String,
    /// The form of the module that reads them.
    module: ModuleKind,
    publish: watch::Sender<Served>,
}

impl Publisher {
    /// A publisher of the rules in a file.
    pub fn new(path: &Path, module: ModuleKind, publish: watch::Sender<Served>) -> Publisher {
        Publisher { name: plain(&path.to_string_lossy()), module, publish }
    }

    /// The rules of a document.
    ///
    /// # Errors
    /// A line for each problem.
    pub fn check(&self, text: &[u8]) -> Result<Vec<String>, String> {
        let reader = Reader::remote(Own { module: self.module, ..Own::default() });
        let policy = reader.policy(text);
        policy.map(|policy| names_of(&policy)).map_err(|problems| lines(&self.name, &problems))
    }

    /// Serves the content of the file, if it has no problems.
    pub fn offer(&self, content: Result<Vec<u8>, String>) {
        match content.and_then(|text| self.check(&text).map(|rules| (text, rules))) {
            Ok((text, rules)) => self.serve(text, rules, DocumentOrder::default(), None),
            Err(problems) => self.refuse(problems),
        }
    }

    /// Serves a document with these rules, and the problems of the present file.
    pub fn serve(
        &self,
        text: Vec<u8>,
        rules: Vec<String>,
        order: DocumentOrder,
        problems: Option<String>,
    ) {
        let name = &self.name;
        let version = remote::version_of(&text);
        let line = format!("{name}: version {version:016x} is served, {}", summary(&rules));
        let now: BTreeSet<String> = rules.iter().cloned().collect();
        let mut before = Arc::default();
        self.publish.send_modify(|served| {
            served.seen = order.clone();
            let tag = DocumentTag { version, order };
            served.document = Some(Document { text: text.into(), tag });
            before = std::mem::replace(&mut served.rules, rules.into());
            (served.problems, served.waits) = (problems, None);
        });
        let ended = before.iter().filter(|rule| !now.contains(*rule));
        let ended: Vec<String> = ended.cloned().collect();
        log(&line);
        if !ended.is_empty() {
            log(&format!("{name}: these rules have ended: {}", names::listed(&ended)));
        }
    }

    /// This server has read the API server up to an order, and fulfilled requests up to a number.
    #[cfg(feature = "policies")]
    pub fn confirm(&self, order: DocumentOrder, number: u64) {
        self.publish.send_if_modified(|served| {
            let is_new = served.seen != order || served.confirmed != number;
            (served.seen, served.confirmed) = (order, number);
            is_new
        });
    }

    /// There is no document before all objects are listed.
    #[cfg(feature = "policies")]
    pub fn wait(&self, waits: String) {
        self.publish.send_modify(|served| served.waits = Some(waits));
    }

    /// Keeps serving the former document, since the content of the file has problems.
    pub fn refuse(&self, problems: String) {
        let then = match &self.publish.borrow().document {
            Some(Document { tag, .. }) => format!("version {:016x} is still served", tag.version),
            None => "there is nothing to serve, so this server is not ready".into(),
        };
        self.publish.send_modify(|served| {
            served.problems = Some(problems.clone());
            served.refused += 1;
        });
        log(&format!("{}: the rules cannot be used; {then}", self.name));
        problems.lines().for_each(log);
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
