//! A host for tests and tools: a clock that stands where it is put, and a request made of parts.

use std::borrow::Cow;
use std::cell::Cell;

use super::{Clock, HeaderName, Property, Pseudo, Request, Values};
use crate::time::Now;

/// A clock that moves only when told to.
#[derive(Debug, Default)]
pub struct FakeClock(pub Cell<Now>);

impl Clock for FakeClock {
    fn now(&self) -> Now {
        self.0.get()
    }
}

/// A request made of parts.
#[derive(Debug, Clone, Default)]
pub struct FakeRequest {
    /// `:path`, `:method` and `:authority`, where present.
    pub path: Option<Vec<u8>>,
    /// See `path`.
    pub method: Option<Vec<u8>>,
    /// See `path`.
    pub authority: Option<Vec<u8>>,
    /// Names in lower case with their values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Properties with their bytes.
    pub properties: Vec<(Property, Vec<u8>)>,
}

impl FakeRequest {
    /// `GET path` on `example.com`.
    #[must_use]
    pub fn get(path: &str) -> FakeRequest {
        FakeRequest {
            path: Some(path.into()),
            method: Some("GET".into()),
            authority: Some("example.com".into()),
            ..FakeRequest::default()
        }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> FakeRequest {
        self.headers.push((name.into(), value.as_ref().into()));
        self
    }

    /// With one more property.
    #[must_use]
    pub fn property(mut self, path: &[&str], value: impl AsRef<[u8]>) -> FakeRequest {
        self.properties.push((Property::new(path), value.as_ref().into()));
        self
    }

    /// From a client, such as `192.0.2.1:4000`.
    #[must_use]
    pub fn from(self, address: &str) -> FakeRequest {
        self.property(&["source", "address"], address)
    }
}

impl Request for FakeRequest {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let value = match which {
            Pseudo::Path => &self.path,
            Pseudo::Method => &self.method,
            Pseudo::Authority => &self.authority,
        };
        value.as_deref().map(Cow::Borrowed)
    }

    fn header(&self, name: &HeaderName) -> Values<'_> {
        let same = |pair: &&(String, Vec<u8>)| pair.0 == name.as_str();
        let mut found = self.headers.iter().filter(same).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (None, _) => Values::None,
            (Some(value), None) => Values::One(Cow::Borrowed(value)),
            (Some(first), Some(second)) => {
                Values::Many([first, second].into_iter().chain(found).cloned().collect())
            }
        }
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        let (_, value) = self.properties.iter().find(|(key, _)| key == property)?;
        Some(Cow::Borrowed(value))
    }
}
