//! `diana schema`, and the schema in the repository.

use std::fs;

use crate::command::{diana, root};

const FILE: &str = "envoy/limits.schema.json";

#[test]
fn schema_file_equals_the_printed_schema() {
    let kept = fs::read_to_string(root().join(FILE)).unwrap();
    let printed = diana(&["schema"]).out;
    assert!(kept == printed, "write it anew: cargo run -p diana-cli schema > {FILE}");
}

#[test]
fn shipped_rules_reference_the_schema() {
    let examples = fs::read_dir(root().join("envoy/examples")).unwrap();
    let examples = examples.map(|entry| (entry.unwrap().path(), "../limits.schema.json"));
    let others = ["limits.yaml", "fleet-rules.yaml"];
    let others = others.map(|name| (root().join("envoy").join(name), "limits.schema.json"));
    for (path, schema) in examples.chain(others) {
        let text = fs::read_to_string(&path).unwrap();
        let first = format!("# yaml-language-server: $schema={schema}\n");
        assert!(text.starts_with(&first), "{}", path.display());
    }
}

#[test]
fn resource_file_equals_the_printed_definition() {
    let file = "charts/diana-crds/templates/limitpolicies.yaml";
    let kept = fs::read_to_string(root().join(file)).unwrap();
    let printed = diana(&["schema", "--crd"]).out;
    assert!(kept == printed, "write it anew: cargo run -p diana-cli schema -- --crd > {file}");
    // Helm would take them for its own.
    assert!(!kept.contains("{{"));
}
