//! Lines that are objects of JSON. Only the fields that are needed are read.

use std::borrow::Cow;
use std::fmt;

use diana_policy::json::MemberName;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::entry::LogEntry;
use super::fields::{FieldMapping, FieldTarget, LogField, usual};
use super::{instant, text};

/// Reads one object into an entry.
struct ObjectReader<'a> {
    entry: &'a mut LogEntry,
    mapping: &'a FieldMapping,
    has_time: bool,
}

/// Where the meaning of a field comes from.
enum Meaning {
    /// A `--set`.
    Set,
    /// The usual meaning of its name.
    Usual(FieldTarget),
    /// Its name is that of a header of the request.
    Header,
}

/// Reads a line.
///
/// # Errors
/// Why the line has no request.
pub fn read(line: &[u8], mapping: &FieldMapping, entry: &mut LogEntry) -> Result<(), &'static str> {
    let mut reader = ObjectReader { entry, mapping, has_time: false };
    let mut json = serde_json::Deserializer::from_slice(line);
    let object = Object { reader: &mut reader, within: "" };
    object.deserialize(&mut json).map_err(|_| "it is not a JSON object")?;
    json.end().map_err(|_| "it is not a JSON object")?;
    if !reader.has_time {
        return Err("it has no time");
    }
    entry.field(LogField::Path).map(|_| ()).ok_or("it has no path")
}

impl ObjectReader<'_> {
    /// The meaning of a field, by its name; none if the field is not needed.
    fn meaning(&self, name: &str) -> Option<Meaning> {
        let set = &self.mapping.set;
        if set.iter().any(|(_, field)| field == name) {
            return Some(Meaning::Set);
        }
        match usual(name) {
            Some(target) if set.iter().any(|(own, _)| *own == target) => None,
            Some(target) => Some(Meaning::Usual(target)),
            // The names of headers have hyphens. The names of Envoy's own fields have none.
            None => name.contains('-').then_some(Meaning::Header),
        }
    }

    /// Takes the value of a field.
    fn take(&mut self, meaning: &Meaning, name: &str, value: &[u8]) {
        match meaning {
            Meaning::Usual(target) => self.put(target, None, value),
            Meaning::Header => {
                self.entry.put_header(name.to_ascii_lowercase().as_bytes(), value);
            }
            Meaning::Set => {
                for (number, (target, field)) in self.mapping.set.iter().enumerate() {
                    if field == name {
                        self.put(target, Some(number), value);
                    }
                }
            }
        }
    }

    fn put(&mut self, target: &FieldTarget, number: Option<usize>, value: &[u8]) {
        match target {
            FieldTarget::Time => {
                let at = instant::parse(value);
                self.has_time |= at.is_some();
                self.entry.at = at.unwrap_or(self.entry.at);
            }
            FieldTarget::Status => self.entry.status = text::status(value).unwrap_or(0),
            FieldTarget::Duration => self.entry.took = text::milliseconds(value),
            FieldTarget::Field(field) => self.entry.put(*field, value),
            FieldTarget::Header(_) | FieldTarget::Response(_) | FieldTarget::Property(_) => {
                number.into_iter().for_each(|number| self.entry.put_set(number, value));
            }
        }
    }
}

/// An object. `within` is the name of the field that it is the value of.
struct Object<'r, 'a> {
    reader: &'r mut ObjectReader<'a>,
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
        while let Some(MemberName(name)) = fields.next_key()? {
            let name = match self.within {
                "" => name,
                within => format!("{within}.{name}").into(),
            };
            let meaning = self.reader.meaning(&name);
            if meaning.is_none() && !self.reader.mapping.is_deep {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let text = fields.next_value_seed(FieldValue { reader: self.reader, name: &name })?;
            if let (Some(meaning), Some(text)) = (meaning, text) {
                self.reader.take(&meaning, &name, text.as_bytes());
            }
        }
        Ok(())
    }
}

/// Reads the value of a field as text. The fields of an object are read, and the object has no
/// text.
struct FieldValue<'r, 'a> {
    reader: &'r mut ObjectReader<'a>,
    name: &'r str,
}

/// The text of a value, if it has one.
type Text<'de> = Option<Cow<'de, str>>;

impl<'de> DeserializeSeed<'de> for FieldValue<'_, '_> {
    type Value = Text<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Text<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldValue<'_, '_> {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Some(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Some(text.to_owned().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Text<'de>, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Text<'de>, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Text<'de>, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Text<'de>, E> {
        Ok(Some(flag.to_string().into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
        Ok(None)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Text<'de>, S::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<Text<'de>, M::Error> {
        if self.reader.mapping.is_deep {
            Object { reader: self.reader, within: self.name }.visit_map(fields)?;
        } else {
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(None)
    }
}
