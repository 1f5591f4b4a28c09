//! What pages of the book say: every metric has its row, and every example of rules is valid.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use diana_core::port::Metrics;
use diana_core::redis::client::Stats;
use diana_core::report::metrics::{
    RuleCounts, flush_fleet, flush_hot_keys, flush_keys, flush_metadata, flush_mode, flush_traffic,
};
use diana_core::settling::Untold;
use diana_core::store::slots::traffic::Traffic;

const PAGE: &str = include_str!("../../docs/reference/answers.md");

/// Notes the names of metrics.
#[derive(Default)]
struct Names(RefCell<BTreeSet<String>>);

impl Metrics for Names {
    fn count(&self, name: &str, _: u64) {
        self.0.borrow_mut().insert(name.to_owned());
    }

    fn gauge(&self, name: &str, _: i64) {
        self.count(name, 1);
    }

    fn record(&self, name: &str, _: u64) {
        self.count(name, 1);
    }
}

/// Names as Prometheus sees them, `diana_rule_refused`.
fn every_metric() -> BTreeSet<String> {
    let names = Names::default();
    let mut counts = RuleCounts {
        allowed: 1,
        refused: 1,
        shadow_refused: 1,
        banned: 1,
        bans: 1,
        held: 1,
        waited_for_permits: 1,
        hot: 1,
        overflow: 1,
        unsettled: 1,
        in_flight: 1,
        ..RuleCounts::default()
    };
    let reasons = [Untold::ClientLeft, Untold::Cut, Untold::Absent, Untold::Unusable];
    reasons.into_iter().for_each(|reason| counts.settle(1, 2, Some(reason)));
    counts.settle(2, 1, None);
    counts.flush("n", "r", &names);
    flush_keys("n", "r", 1, &names);
    flush_hot_keys("n", "r", 1, &names);
    flush_metadata("n", &mut 1, &names);
    let one = || Cell::new(1);
    let traffic = Traffic { writes: one(), conflicts: one(), exhausted: one(), corrupt: one() };
    flush_traffic("n", &traffic, &names);
    ["fleet", "gateway"].into_iter().for_each(|mode| flush_mode("n", mode, 1, &names));
    let failures = vec![("timeout", 1)];
    let mut stats = Stats {
        trips: 1,
        asks: 1,
        corrupt: 1,
        apart: 1,
        unsettled: 1,
        failures,
        ..Stats::default()
    };
    flush_fleet("n", &mut stats, &names);
    let plain =
        |name: &String| name.replacen(".n", "", 1).replacen(".r.", ".", 1).replace('.', "_");
    names.0.borrow().iter().map(plain).collect()
}

#[test]
fn the_page_of_metrics_has_every_metric_of_the_core() {
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `diana_")).collect();
    for metric in every_metric() {
        // A row names a metric, and others by what differs at their ends.
        let listed = rows.iter().any(|row| {
            let mut names = row.split('|').nth(1).unwrap_or("").split('`').skip(1).step_by(2);
            let first = names.next().unwrap_or("");
            first == metric
                || names.any(|end| {
                    metric
                        .strip_suffix(end)
                        .is_some_and(|begin| first.starts_with(&format!("{begin}_")))
                })
        });
        assert!(listed, "{metric} is not in answers.md");
    }
}

/// The README and the pages of the book.
fn every_page() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/guides", "docs/reference"] {
        let files = fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|end| end == "md")));
    }
    pages
}

/// A whole document of an example, which may show a part; nothing if it is Envoy's or another program's.
fn document(example: &str) -> Option<String> {
    let first = example.trim_start().lines().find(|line| !line.starts_with('#'))?;
    let indented = example.replace('\n', "\n    ");
    match first {
        _ if example.lines().any(|line| line.starts_with("limits:")) => Some(example.to_owned()),
        "routes:" => None,
        _ if first.starts_with("- name:") || first.starts_with("- run:") => None,
        _ if first.starts_with("- {") => Some(format!(
            "limits:\n- Url: /\n  rules:\n    {indented}\nactors: {{item: [{{query: id}}]}}"
        )),
        _ if first.starts_with("- Url:") => Some(example.to_owned()),
        _ => Some(format!("{example}\nlimits: []")),
    }
}

#[test]
fn every_example_of_rules_is_valid() {
    let mut examples = 0;
    for page in every_page() {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for document in blocks.filter_map(document) {
            examples += 1;
            if let Err(problems) = diana_config::parse(document.as_bytes()) {
                panic!("{}:\n{problems}\n\n{document}", page.display());
            }
        }
    }
    assert!(examples > 15, "{examples}");
}
