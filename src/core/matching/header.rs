//! Conditions on headers.

use crate::policy::{Condition, Test};
use crate::port::{Request, Values};

impl Condition {
    /// Whether the request meets the condition for anybody who may read it, as it is enough for a rule
    /// to apply: by any value of a header that occurs more than once, or that is a list.
    #[must_use]
    pub fn may_hold(&self, request: &dyn Request) -> bool {
        let may = |value: &[u8]| readings(value).any(|reading| self.test.accepts(reading));
        match request.header(&self.name) {
            Values::None => self.test.accepts_none(),
            Values::One(value) => may(value),
            // Without any, nobody can tell.
            Values::Many(values) => values.is_empty() || values.into_iter().any(may),
        }
    }

    /// Whether the request meets the condition for everybody, as an exemption takes: by all values.
    #[must_use]
    pub fn must_hold(&self, request: &dyn Request) -> bool {
        let must = |value: &[u8]| match self.test {
            Test::Not(_) => readings(value).all(|reading| self.test.accepts(reading)),
            _ => self.test.accepts(value),
        };
        match request.header(&self.name) {
            Values::None => self.test.accepts_none(),
            Values::One(value) => must(value),
            Values::Many(values) => !values.is_empty() && values.into_iter().all(must),
        }
    }
}

/// What a value may be taken for: as it stands, or the items of a list, as which others may have
/// written a header that occurred more than once. Not every protocol takes spaces around it off.
fn readings(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let items = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    std::iter::once(value).chain(items)
}

impl Test {
    fn accepts_none(&self) -> bool {
        matches!(self, Test::Present(false) | Test::Not(_))
    }

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
