//! Every document of the book as a `LimitPolicy`.

use std::fs;
use std::path::Path;

use diana_config::resource;
use diana_config::{ConfigSource, Reader};
use diana_policy::{ModuleKind, Policy};
use serde_json::{Value, json};

use super::{document, every_page};
use crate::support::structural::{in_form, mistake, spec_schema};

/// The documents of the pages, the reference and the examples.
fn documents() -> Vec<(String, String)> {
    let mut documents = Vec::new();
    for page in every_page() {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let found = blocks.filter_map(document);
        documents.extend(found.map(|document| (page.display().to_string(), document)));
    }
    let envoy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy");
    let examples = fs::read_dir(envoy.join("examples")).unwrap().map(|file| file.unwrap().path());
    for path in examples.chain([envoy.join("limits.yaml")]) {
        documents.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
    }
    documents
}

fn read(source: &ConfigSource) -> Policy {
    let policy =
        [ModuleKind::Wasm, ModuleKind::Native].map(|module| Reader::new(module).read(source));
    let [wasm, native] = policy;
    wasm.or(native).unwrap_or_else(|problems| panic!("{problems}")).0
}

/// The limits and actors, without the identity of rules, which depends on how they are written.
fn plain(policy: &Policy) -> String {
    let mut limits = policy.limits.clone();
    for limit in &mut limits {
        limit.fingerprint = 0;
        limit.rules.iter_mut().for_each(|rule| rule.fingerprint = 0);
    }
    format!("{limits:#?} {:?}", policy.actors)
}

/// Removes conditions on the route, which a resource has as its targets, and sizes of tables.
fn remove_absent(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(remove_absent);
            items.retain(|item| *item != json!({}));
        }
        Value::Object(pairs) => {
            pairs.remove("route");
            pairs.remove("keys");
            pairs.values_mut().for_each(remove_absent);
            for key in ["match", "unless", "except"] {
                if pairs.get(key).is_some_and(|block| *block == json!({}) || *block == json!([])) {
                    pairs.remove(key);
                }
            }
        }
        _ => {}
    }
}

/// Names of claims as lists, which a policy has as written; and `not` with a test. With a text it always holds for lists in
/// metadata, which a resource cannot express.
fn write_in_one_form(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(write_in_one_form),
        Value::Object(pairs) => {
            if let Some(claim) = pairs.get_mut("jwt_claim").filter(|claim| claim.is_string()) {
                *claim = json!([claim]);
            }
            if let Some(text) = pairs.get_mut("not").filter(|test| !test.is_object()) {
                *text = json!({"exact": text});
            }
            let others = pairs.iter_mut().filter(|(key, _)| *key != "month_starts");
            others.for_each(|(_, value)| write_in_one_form(value));
        }
        _ => {}
    }
}

/// Gives all rules the names that they have in a policy, since a resource requires names.
fn name_rules(entries: &mut Value, policy: &Policy) {
    let mut names = policy.rules().map(|rule| rule.name.as_str());
    let rules =
        entries.as_array_mut().unwrap().iter_mut().filter_map(|entry| entry.get_mut("rules"));
    for rule in rules.flat_map(|rules| rules.as_array_mut().unwrap()) {
        rule["name"] = names.next().unwrap().into();
    }
}

#[test]
fn every_document_gives_the_same_policy_as_a_resource() {
    let schema = spec_schema();
    let mut entries = 0;
    for (name, text) in documents() {
        let source = ConfigSource::read(text.as_bytes()).unwrap();
        let [tree] = source.documents() else { continue };
        let mut document = serde_json::to_value(tree).unwrap();
        if document.get("limits").is_none() {
            document = json!({"limits": document});
        }
        remove_absent(&mut document["limits"]);
        write_in_one_form(&mut document["limits"]);
        let source = ConfigSource::read(document.to_string().as_bytes()).unwrap();
        let expected = read(&source);
        name_rules(&mut document["limits"], &expected);
        let limits = in_form(&document["limits"], &schema["properties"]["limits"]);
        let target =
            json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "shop"});
        let spec = json!({"targetRefs": [target], "limits": limits});
        assert_eq!(mistake(&spec, &schema, "spec"), None, "{name}:\n{spec:#}");
        let spec = ConfigSource::read(spec.to_string().as_bytes()).unwrap();
        let read_spec = resource::document(&spec).unwrap_or_else(|it| panic!("{name}:\n{it}"));
        let as_resource = read(&read_spec.beside(source.documents().first()));
        let (found, wanted) = (plain(&as_resource), plain(&expected));
        let differs = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
        assert!(found == wanted, "{name}: {differs:?}");
        entries += expected.limits.len();
    }
    assert!(entries > 60, "{entries}");
}

/// As the API server and the companion read them.
#[test]
fn every_policy_of_the_book_is_valid() {
    let schema = spec_schema();
    let mut policies = 0;
    for page in every_page() {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for block in blocks.filter(|block| block.contains("\nkind: LimitPolicy\n")) {
            let source = ConfigSource::read(block.as_bytes()).unwrap();
            let spec = source.documents()[0].get("spec").unwrap();
            let value = serde_json::to_value(spec).unwrap();
            assert_eq!(mistake(&value, &schema, "spec"), None, "{}", page.display());
            let document = resource::document(&ConfigSource::of(spec.clone())).unwrap();
            read(&document.beside(None));
            policies += 1;
        }
    }
    assert!(policies > 0);
}
