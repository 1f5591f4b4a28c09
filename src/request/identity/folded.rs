//! One caller for several spellings of a value: `{header: x-user, lower: true}`,
//! `{header: x-key, strip_prefix: "key "}`.

use std::borrow::Cow;
use std::rc::Rc;

use super::{BuiltSource, Identifier, Mistake, Source, SourceValue, ValueForm};
use diana_policy::Prefix;
use diana_policy::port::Request;
use diana_policy::tree::Tree;

/// The options of every source of text.
pub const OPTIONS: &[(&str, ValueForm)] =
    &[("lower", ValueForm::Flag), ("strip_prefix", ValueForm::Text)];

/// A source with values in a common form.
#[derive(Debug)]
struct Folded {
    source: Rc<dyn Source>,
    lower: bool,
    /// In lower case if `lower` is set.
    prefix: Box<[u8]>,
}

/// The source with the [`OPTIONS`] that are present.
pub(super) fn folded(source: Rc<dyn Source>, options: &[(String, Tree)]) -> BuiltSource {
    let option = |name: &str| options.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let mistake = |key: &str, value: &Tree, allowed: &str| {
        vec![Mistake {
            key: key.into(),
            message: format!("found {}, allowed: {allowed}", value.found()),
        }]
    };
    let lower = match option("lower") {
        None => false,
        Some(Tree::Bool(lower)) => *lower,
        Some(other) => return Err(mistake("lower", other, "true or false")),
    };
    let prefix: Box<[u8]> = match option("strip_prefix") {
        None => Box::default(),
        Some(Tree::Text(text)) if !text.is_empty() => text.as_bytes().into(),
        Some(other) => return Err(mistake("strip_prefix", other, "text in front of the value")),
    };
    if !lower && prefix.is_empty() {
        return Ok(source);
    }
    let prefix = if lower { lower_case(&prefix).into() } else { prefix };
    Ok(Rc::new(Folded { source, lower, prefix }))
}

impl Folded {
    fn fold<'v>(&self, value: Cow<'v, [u8]>) -> Cow<'v, [u8]> {
        let value = if self.lower { Cow::Owned(one_case(&value)) } else { value };
        match value.strip_prefix(&*self.prefix) {
            Some(rest) if !self.prefix.is_empty() => Cow::Owned(rest.trim_ascii().to_vec()),
            _ => value,
        }
    }
}

impl Source for Folded {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        match self.source.find(request) {
            SourceValue::Value(Identifier::Text(text)) => SourceValue::text(self.fold(text)),
            other => other,
        }
    }

    fn reads_headers(&self) -> bool {
        self.source.reads_headers()
    }

    fn header(&self) -> Option<&str> {
        self.source.header()
    }

    fn spelled(&self, text: &[u8]) -> Option<Vec<u8>> {
        let value = self.fold(Cow::Owned(self.source.spelled(text)?)).into_owned();
        (!value.is_empty()).then_some(value)
    }

    fn is_caller_chosen(&self) -> bool {
        self.source.is_caller_chosen()
    }

    fn within(&self, urls: &Rc<[Prefix]>) -> Option<Rc<dyn Source>> {
        let (source, prefix) = (self.source.within(urls)?, self.prefix.clone());
        Some(Rc::new(Folded { source, lower: self.lower, prefix }))
    }

    fn path_param(&self) -> Option<&str> {
        self.source.path_param()
    }

    fn warning(&self) -> Option<String> {
        self.source.warning()
    }
}

/// Text in lower case, without spaces around it, which services remove from names as they ignore case.
fn one_case(text: &[u8]) -> Vec<u8> {
    lower_case(std::str::from_utf8(text).map_or(text.trim_ascii(), |text| text.trim().as_bytes()))
}

/// Text in lower case, with one letter for both forms of the Greek sigma. Of bytes that are no UTF-8
/// only those of ASCII change.
fn lower_case(text: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => {
            let lower = text.chars().flat_map(char::to_lowercase);
            lower.map(|sign| if sign == 'ς' { 'σ' } else { sign }).collect::<String>().into_bytes()
        }
        _ => text.to_ascii_lowercase(),
    }
}
