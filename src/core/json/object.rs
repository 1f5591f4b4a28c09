//! JSON that is written: objects of a few members.

use std::fmt::Write;

/// An object to which members are added, in order.
#[derive(Debug)]
pub struct JsonObject(String);

impl Default for JsonObject {
    fn default() -> JsonObject {
        JsonObject("{".into())
    }
}

impl JsonObject {
    /// With a member that is text.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> JsonObject {
        self.name(name);
        quote(value, &mut self.0);
        self
    }

    /// With a member that is a whole number.
    #[must_use]
    pub fn number(self, name: &str, value: u64) -> JsonObject {
        self.json(name, &value.to_string())
    }

    /// With a member that is true or false.
    #[must_use]
    pub fn flag(self, name: &str, value: bool) -> JsonObject {
        self.json(name, if value { "true" } else { "false" })
    }

    /// With a member that is JSON itself.
    #[must_use]
    pub fn json(mut self, name: &str, value: &str) -> JsonObject {
        self.name(name);
        self.0.push_str(value);
        self
    }

    /// The object.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(name, &mut self.0);
        self.0.push(':');
    }
}

/// A list of values that are JSON themselves.
pub fn list(values: impl IntoIterator<Item = String>) -> String {
    let mut text = String::from("[");
    for value in values {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&value);
    }
    text.push(']');
    text
}

/// Text in quotes, of printable ASCII only.
#[must_use]
pub fn quoted(value: &str) -> String {
    let mut text = String::new();
    quote(value, &mut text);
    text
}

/// Adds text in quotes, of printable ASCII only, so that it may stand in a header.
pub fn quote(value: &str, to: &mut String) {
    to.push('"');
    for letter in value.chars() {
        match letter {
            '"' | '\\' => to.extend(['\\', letter]),
            ' '..='~' => to.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    _ = write!(to, "\\u{unit:04x}");
                }
            }
        }
    }
    to.push('"');
}
