//! JSON: output in printable ASCII, members of objects, and values at pointers.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;

/// Writes a value in printable ASCII, so that the text is valid in a header.
#[must_use]
pub fn ascii(value: &impl Serialize) -> String {
    let mut json = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut json, Ascii);
    // Writing to memory cannot fail, and map keys are text.
    _ = value.serialize(&mut writer);
    String::from_utf8(json).unwrap_or_default()
}

/// Escapes all characters except printable ASCII.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        to: &mut W,
        text: &str,
    ) -> io::Result<()> {
        for letter in text.chars() {
            match letter {
                ' '..='~' => to.write_all(&[letter as u8])?,
                _ => letter
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .try_for_each(|unit| write!(to, "\\u{unit:04x}"))?,
            }
        }
        Ok(())
    }
}

/// The name of a member. Copied only if it has escapes.
#[derive(Debug, Deserialize)]
pub struct MemberName<'j>(#[serde(borrow)] pub Cow<'j, str>);

/// Finds the last member with this name. Other members are skipped without allocation.
struct MemberFinder<'n>(&'n str);

impl<'j> Visitor<'j> for MemberFinder<'_> {
    type Value = Option<&'j RawValue>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<M: MapAccess<'j>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some(MemberName(name)) = members.next_key()? {
            if name == self.0 {
                found = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

impl MemberFinder<'_> {
    /// `None` if the text is not an object.
    fn find(self, json: &[u8]) -> Option<Option<&str>> {
        let mut json = serde_json::Deserializer::from_slice(json);
        let found = json.deserialize_map(self).ok()?;
        json.end().ok()?;
        Some(found.map(RawValue::get))
    }
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    /// Text, or a whole number.
    Value(Vec<u8>),
    /// There is none, or it is `null`, or an empty list or mapping.
    Absent,
    /// The text is not an object, or the member is something else.
    Unreadable,
}

/// The member of the object in `json` with this name; with several names, the member of an object in
/// that object, and so on. The last one of duplicates.
#[must_use]
pub fn member<N: AsRef<str>>(json: &[u8], names: &[N]) -> Member {
    let (mut object, mut value) = (json, "");
    for (depth, name) in names.iter().enumerate() {
        value = match MemberFinder(name.as_ref()).find(object) {
            Some(Some(value)) => value,
            Some(None) => return Member::Absent,
            None if depth > 0 && value == "null" => return Member::Absent,
            None => return Member::Unreadable,
        };
        object = value.as_bytes();
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Member::Value(value.into());
    }
    let is_empty = |open, close| {
        let inner = value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.is_some_and(|inner: &str| inner.trim_ascii().is_empty())
    };
    match text(value) {
        Some(text) => Member::Value(text),
        None if value == "null" || is_empty('[', ']') || is_empty('{', '}') => Member::Absent,
        None => Member::Unreadable,
    }
}

/// The value at a pointer (RFC 6901) of at least one step. Text is returned without quotes and
/// escapes, any other value as written. `None` if there is no such value, or it is `null`.
#[must_use]
pub fn pointed(json: &[u8], pointer: &str) -> Option<Vec<u8>> {
    let mut value = read::<&RawValue>(json)?.get();
    for step in pointer.split('/').skip(1) {
        value = match value.starts_with('[') {
            true => read::<Vec<&RawValue>>(value.as_bytes())?.get(index(step)?)?.get(),
            false => {
                let name = step.replace("~1", "/").replace("~0", "~");
                MemberFinder(&name).find(value.as_bytes())??
            }
        };
    }
    text(value).or_else(|| (!value.starts_with(['"', 'n'])).then(|| value.into()))
}

fn text(json: &str) -> Option<Vec<u8>> {
    read(json.as_bytes()).map(String::into_bytes)
}

fn read<'j, T: Deserialize<'j>>(json: &'j [u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}

/// The index of an item in the notation of a pointer.
fn index(step: &str) -> Option<usize> {
    let is_index = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_index)
}
