//! The metrics of the server, in the text format of Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

use super::rules::Served;

/// The answers to requests for the rules.
#[derive(Debug, Clone, Copy)]
pub enum Poll {
    /// The document.
    Document,
    /// 304: the client has it.
    Unchanged,
    /// 503: there is none.
    Unready,
}

/// The number of requests for the rules, by answer.
#[derive(Debug, Default)]
pub struct Polls {
    document: AtomicU64,
    unchanged: AtomicU64,
    unready: AtomicU64,
}

impl Polls {
    /// Counts a request.
    pub fn count(&self, poll: Poll) {
        let counter = match poll {
            Poll::Document => &self.document,
            Poll::Unchanged => &self.unchanged,
            Poll::Unready => &self.unready,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics.
    pub fn metrics(&self, served: &Served) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
            let name = format!("diana_serve_{name}");
            text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
            text.extend(samples.iter().map(|(labels, value)| format!("{name}{labels} {value}\n")));
        };
        let one = |value: u64| [(String::new(), value)];
        let is_refused = served.problems.is_some();
        metric(
            "refused",
            "gauge",
            "1 while the file of rules has problems, so that it is not served.",
            &one(is_refused.into()),
        );
        metric(
            "refusals_total",
            "counter",
            "Contents of the file of rules that were not served.",
            &one(served.refused),
        );
        let document = served.document.iter();
        let document: Vec<(String, u64)> = document
            .map(|document| {
                let labels = format!("{{version=\"{:016x}\"}}", document.tag.version);
                (labels, diana_config::checksum(&document.text).into())
            })
            .collect();
        metric(
            "document",
            "gauge",
            "The checksum of the served document, as diana_document of a gateway that has it.",
            &document,
        );
        metric("rules", "gauge", "Rules of the served document.", &one(served.rules.len() as u64));
        let polls = [
            ("document", &self.document),
            ("unchanged", &self.unchanged),
            ("unready", &self.unready),
        ];
        let polls = polls.map(|(answer, count)| {
            (format!("{{answer=\"{answer}\"}}"), count.load(Ordering::Relaxed))
        });
        metric("polls_total", "counter", "Requests for the rules.", &polls);
        text
    }
}
