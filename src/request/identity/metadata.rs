//! Dynamic metadata set by a preceding filter: `{metadata: [namespace, key, …]}`, with `typed: true` in a typed message.

use std::cell::Cell;
use std::rc::Rc;

use super::{BuiltSource, Mistake, Source, SourceKind, SourceValue, ValueForm};
use diana_policy::number;
use diana_policy::port::{Property, Request};
use diana_policy::spelling::metadata;
use diana_policy::tree::Tree;

/// `metadata` in the registry.
pub const KIND: SourceKind = SourceKind {
    name: "metadata",
    form: ValueForm::Texts,
    options: &[(TYPED, ValueForm::Flag)],
    build,
};

/// The option for typed messages.
pub const TYPED: &str = "typed";

/// A value in dynamic metadata.
#[derive(Debug)]
pub(super) struct Metadata {
    property: Property,
    /// Whether a request had a number that the host has rounded.
    is_rounded: Cell<bool>,
}

fn build(value: &Tree, options: &[(String, Tree)]) -> BuiltSource {
    let Some(path) = names(value) else {
        let message =
            format!("found {}, allowed: a list of a namespace and at least one key", value.found());
        return Err(vec![Mistake { key: "metadata".into(), message }]);
    };
    let kind = match options.iter().find(|(name, _)| name == TYPED) {
        None | Some((_, Tree::Bool(false))) => "filter_metadata",
        Some((_, Tree::Bool(true))) => "typed_filter_metadata",
        Some((_, other)) => {
            let message = format!("found {}, allowed: true or false", other.found());
            return Err(vec![Mistake { key: TYPED.into(), message }]);
        }
    };
    Ok(Rc::new(Metadata::of(kind, &path)))
}

impl Metadata {
    /// The value at `path`: a namespace, then keys.
    pub(super) fn new(path: &[&str]) -> Metadata {
        Metadata::of("filter_metadata", path)
    }

    fn of(kind: &str, path: &[&str]) -> Metadata {
        let property = Property::new(&[&["metadata", kind], path].concat());
        Metadata { property, is_rounded: Cell::new(false) }
    }
}

fn names(value: &Tree) -> Option<Vec<&str>> {
    let Tree::List(items) = value else { return None };
    let names: Vec<&str> = items.iter().map(Tree::text).collect::<Option<_>>()?;
    let usable = |name: &&str| !name.is_empty() && !name.contains('\0');
    (names.len() >= 2 && names.iter().all(usable)).then_some(names)
}

impl Source for Metadata {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        match request.property(&self.property) {
            None => SourceValue::NoMetadata,
            Some(value) if metadata::is_empty(&value) => SourceValue::Absent,
            Some(value) if metadata::has_mapping(&value) => SourceValue::Unclear,
            Some(value) => {
                if number::is_rounded(&value) {
                    self.is_rounded.set(true);
                }
                SourceValue::text(value)
            }
        }
    }

    fn is_caller_chosen(&self) -> bool {
        false
    }

    fn has_rounded(&self) -> bool {
        self.is_rounded.get()
    }
}
