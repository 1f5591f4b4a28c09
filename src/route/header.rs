//! Conditions on headers.

use crate::port::{Request, Values};

/// What one header must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The header, in lower case.
    pub name: String,
    /// What its value must be.
    pub test: Test,
}

/// A test of a header's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The value is this.
    Exact(String),
    /// The value begins with this.
    Prefix(String),
    /// The value ends with this.
    Suffix(String),
    /// The header is there, or is not.
    Present(bool),
    /// No value is this; an absent header has none.
    Not(String),
}

impl Condition {
    /// Whether the request meets the condition. Of a header that occurs more than once any value
    /// will do, and none may be the one that [`Test::Not`] excludes.
    #[must_use]
    pub fn holds(&self, request: &dyn Request) -> bool {
        match request.header(&self.name) {
            Values::None => matches!(self.test, Test::Present(false) | Test::Not(_)),
            Values::One(value) => self.test.accepts(value),
            Values::Many(values) => match self.test {
                Test::Not(_) => values.iter().all(|value| self.test.accepts(value)),
                _ => values.iter().any(|value| self.test.accepts(value)),
            },
        }
    }
}

impl Test {
    fn accepts(&self, value: &[u8]) -> bool {
        match self {
            Test::Exact(text) => value == text.as_bytes(),
            Test::Prefix(text) => value.starts_with(text.as_bytes()),
            Test::Suffix(text) => value.ends_with(text.as_bytes()),
            Test::Present(wanted) => *wanted,
            Test::Not(text) => value != text.as_bytes(),
        }
    }
}

/// Whether `name` can be a header's name (a token of RFC 9110, in any case).
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether `value` can be a header's value that Diana sends.
#[must_use]
pub fn is_value(value: &str) -> bool {
    let is_sound = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    is_sound && value.trim() == value && (1..=1024).contains(&value.len())
}
