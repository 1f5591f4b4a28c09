//! The pages of the book: every metric, header and field has its row, and every example of rules is
//! valid.

mod fields;
mod metrics;
mod resource;

use std::fs;
use std::path::{Path, PathBuf};

use diana_policy::ModuleKind;

const PAGE: &str = include_str!("../../../docs/reference/answers.md");

/// The text in backticks in the first cells of a table, row by row. The head identifies the table.
fn first_cells(head: &str) -> Vec<Vec<&'static str>> {
    let (_, table) = PAGE.split_once(&format!("\n{head}\n")).expect(head);
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(1);
    let cell = |row: &'static str| {
        let cell = row.split('|').nth(1).unwrap_or_default();
        cell.split('`').skip(1).step_by(2).collect()
    };
    rows.map(cell).collect()
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

/// A complete document for an example, which may be an extract. `None` if it belongs to Envoy or
/// another program.
fn document(example: &str) -> Option<String> {
    let first = example.trim_start().lines().find(|line| !line.starts_with('#'))?;
    let indented = example.replace('\n', "\n    ");
    match first {
        _ if example.lines().any(|line| line.starts_with("limits:")) => Some(example.to_owned()),
        "routes:" | "http_filters:" | "vm_config:" | "dynamic_resources:" => None,
        "early_header_mutation_extensions:" | "stats_config:" => None,
        // Values of the chart, a Deployment, an EnvoyProxy.
        "filter:" | "env:" | "spec:" | "policies:" => None,
        _ if first.starts_with("apiVersion:") => None,
        _ if first.starts_with("- name:") || first.starts_with("- run:") => None,
        _ if first.starts_with("- {") => Some(format!(
            "limits:\n- Url: /\n  rules:\n    {indented}\nactors: {{item: [{{query: id}}]}}"
        )),
        _ if first.starts_with("- Url:") => Some(example.to_owned()),
        _ => Some(format!("{example}\nlimits: []")),
    }
}

/// The guide links to the example as its whole document.
#[test]
fn guide_about_logins_has_the_rules_of_the_example() {
    let guide = include_str!("../../../docs/guides/logins.md");
    let (_, shown) = guide.split_once("```yaml\n").unwrap();
    let shown = shown.split("```").next().unwrap();
    let example = include_str!("../../../envoy/examples/logins.yaml");
    let [shown, example] = [shown, example]
        .map(|text| diana_config::Reader::default().policy(text.as_bytes()).unwrap());
    assert_eq!(format!("{:?}", shown.limits), format!("{:?}", example.limits));
}

#[test]
fn every_example_of_rules_is_valid() {
    let mut examples = 0;
    for page in every_page() {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let is_native = page.ends_with("native.md");
        let module = if is_native { ModuleKind::Native } else { ModuleKind::Wasm };
        for document in blocks.filter_map(document) {
            examples += 1;
            if let Err(problems) = diana_config::Reader::new(module).policy(document.as_bytes()) {
                panic!("{}:\n{problems}\n\n{document}", page.display());
            }
        }
    }
    assert!(examples > 15, "{examples}");
}
