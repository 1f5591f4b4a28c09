//! Lines that are objects of JSON, which are read without building them.

use std::fmt::{self, Write};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::entry::Entry;
use super::fields::{Field, Mapping, Target, usual};
use super::{instant, text};

/// What was read of an object beside the entry.
struct Reader<'a> {
    entry: &'a mut Entry,
    mapping: &'a Mapping,
    has_time: bool,
    /// A value, as text.
    value: String,
}

/// Reads a line.
///
/// # Errors
/// Why it tells of no request.
pub fn read(line: &[u8], mapping: &Mapping, entry: &mut Entry) -> Result<(), &'static str> {
    let mut reader = Reader { entry, mapping, has_time: false, value: String::new() };
    let mut json = serde_json::Deserializer::from_slice(line);
    let object = Object { reader: &mut reader, within: "" };
    object.deserialize(&mut json).map_err(|_| "it is no object of JSON")?;
    json.end().map_err(|_| "it is no object of JSON")?;
    if !reader.has_time {
        return Err("it has no time");
    }
    entry.field(Field::Path).map(|_| ()).ok_or("it has no path")
}

impl Reader<'_> {
    /// Takes the value of a field.
    fn take(&mut self, name: &str) {
        let value = std::mem::take(&mut self.value);
        let mut is_set = false;
        for (number, (target, field)) in self.mapping.set.iter().enumerate() {
            if field == name {
                is_set = true;
                self.put(target, Some(number), value.as_bytes());
            }
        }
        if !is_set {
            match usual(name) {
                Some(target) if !self.mapping.set.iter().any(|(set, _)| *set == target) => {
                    self.put(&target, None, value.as_bytes());
                }
                Some(_) => {}
                // As headers are called, and nothing that Envoy itself tells of.
                None if name.contains('-') => {
                    self.entry.put_header(name.to_ascii_lowercase().as_bytes(), value.as_bytes());
                }
                None => {}
            }
        }
        self.value = value;
        self.value.clear();
    }

    fn put(&mut self, target: &Target, number: Option<usize>, value: &[u8]) {
        match target {
            Target::Time => {
                let at = instant::parse(value);
                self.has_time |= at.is_some();
                self.entry.at = at.unwrap_or(self.entry.at);
            }
            Target::Status => self.entry.status = text::status(value).unwrap_or(0),
            Target::Duration => self.entry.took = text::milliseconds(value),
            Target::Field(field) => self.entry.put(*field, value),
            Target::Header(_) | Target::Response(_) | Target::Property(_) => {
                number.into_iter().for_each(|number| self.entry.put_set(number, value));
            }
        }
    }
}

/// An object, whose fields stand within another one of that name.
struct Object<'r, 'a> {
    reader: &'r mut Reader<'a>,
    within: &'r str,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        let mut name = String::new();
        loop {
            name.clear();
            if !self.within.is_empty() {
                name.push_str(self.within);
                name.push('.');
            }
            if fields.next_key_seed(Name(&mut name))?.is_none() {
                return Ok(());
            }
            let is_text = fields.next_value_seed(Value { reader: self.reader, name: &name })?;
            if is_text {
                self.reader.take(&name);
            }
        }
    }
}

/// The name of a field, which is added to a text.
struct Name<'n>(&'n mut String);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }
}

/// The value of a field, which becomes text. Whether it is any: what lies deeper has been taken by then.
struct Value<'r, 'a> {
    reader: &'r mut Reader<'a>,
    name: &'r str,
}

impl Value<'_, '_> {
    fn write(self, value: fmt::Arguments<'_>) -> bool {
        self.reader.value.write_fmt(value).is_ok()
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        self.reader.value.push_str(text);
        Ok(true)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<bool, E> {
        Ok(self.write(format_args!("{number}")))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<bool, E> {
        Ok(self.write(format_args!("{number}")))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<bool, E> {
        Ok(self.write(format_args!("{number}")))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<bool, E> {
        Ok(self.write(format_args!("{flag}")))
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<S: serde::de::SeqAccess<'de>>(self, mut items: S) -> Result<bool, S::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<bool, M::Error> {
        if self.reader.mapping.is_deep {
            Object { reader: self.reader, within: self.name }.visit_map(fields)?;
        } else {
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(false)
    }
}
