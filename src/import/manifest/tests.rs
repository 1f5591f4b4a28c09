use std::cell::RefCell;

use super::{ManifestObject, read};
use crate::source::{Origin, SourceText};

/// The kinds of the objects in a text, and its syntax errors, each with its line.
fn kinds(text: &str) -> String {
    let found = RefCell::new(Vec::new());
    let mut visit = |object: &ManifestObject| {
        let kind = object.root().get("kind").expect("each has a kind");
        let name = kind.tree().text().unwrap_or_default();
        found.borrow_mut().push(format!("{}:{name}", kind.origin().line));
    };
    let mut fault = |origin: Origin, _| found.borrow_mut().push(format!("{}:fault", origin.line));
    read(&SourceText { name: "a".into(), text: text.into() }, &mut visit, &mut fault);
    found.into_inner().join(" ")
}

#[test]
fn each_object_has_its_line() {
    for (text, expected) in [
        ("kind: A\n---\n\nkind: B\n", "1:A 4:B"),
        ("kind: A\r\n---\r\n\r\nkind: B\r\n", "1:A 4:B"),
        ("\u{feff}kind: A\n---\nkind: B\n", "1:A 3:B"),
        (r#"{"kind": "A"}"#, "1:A"),
        ("", ""),
        ("---\n---\n# nothing\n", ""),
    ] {
        assert_eq!(kinds(text), expected, "{text:?}");
    }
}

#[test]
fn a_damaged_document_does_not_affect_the_others() {
    for damaged in ["kind: [", "{{ if .Values.a }}\nkind: A", "a: 1\na", "kind: \"\\q\""] {
        let found = kinds(&format!("kind: A\n---\n{damaged}\n---\nkind: B\n"));
        let parts: Vec<_> = found.split(' ').collect();
        let [first, fault, last] = parts[..] else { panic!("{damaged:?}: {found}") };
        assert!(first == "1:A" && fault.ends_with(":fault") && last.ends_with(":B"), "{found}");
    }
}
