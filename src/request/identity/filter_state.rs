//! Filter state that a preceding filter has set as text: `{filter_state: envoy.ai.model.request}`.

use std::rc::Rc;

use super::{BuiltSource, Source, SourceKind, SourceValue, ValueForm, text};
use diana_policy::port::{Property, Request};
use diana_policy::tree::Tree;

/// `filter_state` in the registry.
pub const KIND: SourceKind =
    SourceKind { name: "filter_state", form: ValueForm::Text, options: &[], build };

#[derive(Debug)]
struct FilterState(Property);

fn build(value: &Tree, _options: &[(String, Tree)]) -> BuiltSource {
    let name = text(KIND.name, value)?;
    Ok(Rc::new(FilterState(Property::new(&["filter_state", &name]))))
}

impl Source for FilterState {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        request.property(&self.0).map_or(SourceValue::NoMetadata, SourceValue::text)
    }

    // Filters copy what clients choose, such as the name of a model.
    fn is_caller_chosen(&self) -> bool {
        true
    }
}
