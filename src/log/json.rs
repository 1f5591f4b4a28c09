//! Lines that are objects of JSON, of which only what is needed is looked at.

use std::borrow::Cow;
use std::fmt;

use diana_policy::json::Name;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::entry::Entry;
use crate::fields::{Field, Mapping, Target, usual};
use crate::{instant, text};

/// What was read of an object beside the entry.
struct Reader<'a> {
    entry: &'a mut Entry,
    mapping: &'a Mapping,
    has_time: bool,
}

/// What a field is.
enum Wanted {
    /// What `--set` says.
    Set,
    /// What fields of that name usually are.
    Usual(Target),
    /// A header of the request.
    Header,
}

/// Reads a line.
///
/// # Errors
/// Why it tells of no request.
pub fn read(line: &[u8], mapping: &Mapping, entry: &mut Entry) -> Result<(), &'static str> {
    let mut reader = Reader { entry, mapping, has_time: false };
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
    /// What a field of this name is, if anybody needs it.
    fn wanted(&self, name: &str) -> Option<Wanted> {
        let set = &self.mapping.set;
        if set.iter().any(|(_, field)| field == name) {
            return Some(Wanted::Set);
        }
        match usual(name) {
            Some(target) if set.iter().any(|(own, _)| *own == target) => None,
            Some(target) => Some(Wanted::Usual(target)),
            // As headers are called, and nothing that Envoy itself tells of.
            None => name.contains('-').then_some(Wanted::Header),
        }
    }

    /// Takes the value of a field.
    fn take(&mut self, wanted: &Wanted, name: &str, value: &[u8]) {
        match wanted {
            Wanted::Usual(target) => self.put(target, None, value),
            Wanted::Header => {
                self.entry.put_header(name.to_ascii_lowercase().as_bytes(), value);
            }
            Wanted::Set => {
                for (number, (target, field)) in self.mapping.set.iter().enumerate() {
                    if field == name {
                        self.put(target, Some(number), value);
                    }
                }
            }
        }
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
        while let Some(Name(name)) = fields.next_key()? {
            let name = match self.within {
                "" => name,
                within => format!("{within}.{name}").into(),
            };
            let wanted = self.reader.wanted(&name);
            if wanted.is_none() && !self.reader.mapping.is_deep {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let said = fields.next_value_seed(Value { reader: self.reader, name: &name })?;
            if let (Some(wanted), Some(said)) = (wanted, said) {
                self.reader.take(&wanted, &name, said.as_bytes());
            }
        }
        Ok(())
    }
}

/// The value of a field as text, if it is any: what lies deeper has been taken by then.
struct Value<'r, 'a> {
    reader: &'r mut Reader<'a>,
    name: &'r str,
}

/// What a value says.
type Said<'de> = Option<Cow<'de, str>>;

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = Said<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Said<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = Said<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Said<'de>, E> {
        Ok(Some(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Said<'de>, E> {
        Ok(Some(text.to_owned().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Said<'de>, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Said<'de>, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Said<'de>, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Said<'de>, E> {
        Ok(Some(flag.to_string().into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Said<'de>, E> {
        Ok(None)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Said<'de>, S::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<Said<'de>, M::Error> {
        if self.reader.mapping.is_deep {
            Object { reader: self.reader, within: self.name }.visit_map(fields)?;
        } else {
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(None)
    }
}
