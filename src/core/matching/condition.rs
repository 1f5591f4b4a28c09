//! Conditions on values.

use super::value::{self, Presence};
use crate::policy::{Condition, Field, Test};
use crate::port::Request;
use crate::spelling::header;

impl Condition {
    /// Whether the request meets the condition for anybody who may read it, as it is enough for a rule
    /// to apply.
    #[must_use]
    pub fn may_hold(&self, request: &dyn Request) -> bool {
        let mut any = false;
        let presence = value::read(&self.field, true, false, request, &mut |reading| {
            any = any || reading.is_some_and(|reading| self.test.accepts(reading));
        });
        presence == Presence::Unknown
            || match &self.test {
                Test::Present(true) => presence != Presence::Absent,
                Test::Present(false) | Test::Not(_) => any || presence != Presence::Sure,
                _ => any,
            }
    }

    /// Whether the request meets the condition for everybody, as an exemption takes. A value that must be percent-encoded
    /// counts decoded only.
    #[must_use]
    pub fn must_hold(&self, request: &dyn Request) -> bool {
        let mut all = true;
        let in_parts = match (&self.test, &self.field) {
            (Test::Not(_), _) => true,
            // The text of a whole list begins and ends as one of its items does.
            (Test::Prefix(_) | Test::Suffix(_), Field::Header(name)) => header::is_list(name),
            _ => false,
        };
        let presence = value::read(&self.field, in_parts, true, request, &mut |reading| {
            all = all
                && match reading {
                    Some(reading) => self.test.accepts(reading),
                    None => matches!(self.test, Test::Present(_)),
                };
        });
        presence != Presence::Unknown
            && match &self.test {
                Test::Present(false) => presence == Presence::Absent,
                Test::Not(_) => all,
                _ => all && presence == Presence::Sure,
            }
    }
}

impl Test {
    fn accepts(&self, value: &[u8]) -> bool {
        match self {
            Test::Exact(text) => value == text.as_bytes(),
            Test::Prefix(text) => value.starts_with(text.as_bytes()),
            Test::Suffix(text) => value.ends_with(text.as_bytes()),
            Test::Contains(text) => {
                value.windows(text.len().max(1)).any(|at| at == text.as_bytes())
            }
            Test::In(texts) => texts.binary_search_by(|text| text.as_bytes().cmp(value)).is_ok(),
            Test::Present(wanted) => *wanted != value.is_empty(),
            Test::Not(text) => value != text.as_bytes(),
        }
    }
}
