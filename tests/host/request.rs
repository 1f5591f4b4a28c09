//! A client's request in a test.

use std::collections::BTreeMap;

use super::pairs::Headers;

#[derive(Debug, Clone)]
pub struct Request {
    pub headers: Headers,
    /// Values by path, its segments joined by NUL.
    pub properties: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The encoded headers of a faulty host.
    pub garbled: Option<Vec<u8>>,
}

impl Request {
    /// A `GET` of `path` at `example.com`, from 192.0.2.1.
    pub fn get(path: impl AsRef<[u8]>) -> Request {
        let (headers, properties) = (Headers::new(), BTreeMap::new());
        Request { headers, properties, garbled: None }
            .header(":authority", "example.com")
            .header(":method", "GET")
            .header(":path", path)
            .header(":scheme", "http")
            .from("192.0.2.1:40000")
    }

    /// Adds a header, in addition to others of that name.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        self.headers.push((name.to_lowercase(), value.as_ref().to_vec()));
        self
    }

    /// Replaces the encoded headers, as a faulty host might.
    pub fn garbled(self, bytes: impl Into<Vec<u8>>) -> Request {
        Request { garbled: Some(bytes.into()), ..self }
    }

    /// Removes a header, such as `:path`.
    pub fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(found, _)| found != name);
        self
    }

    /// Sets the client's address and port.
    pub fn from(self, address: &str) -> Request {
        self.property(&["source", "address"], address)
    }

    pub fn property(mut self, path: &[&str], value: impl AsRef<[u8]>) -> Request {
        self.properties.insert(path.join("\0").into_bytes(), value.as_ref().to_vec());
        self
    }

    /// All values of a header, joined by commas like Envoy's property.
    pub fn joined(&self, name: &[u8]) -> Option<Vec<u8>> {
        let name = name.to_ascii_lowercase();
        let values: Vec<&[u8]> = self
            .headers
            .iter()
            .filter(|(found, _)| found.as_bytes() == name)
            .map(|(_, value)| value.as_slice())
            .collect();
        (!values.is_empty()).then(|| values.join(b",".as_slice()))
    }

    pub fn is_grpc(&self) -> bool {
        let kind = self.joined(b"content-type");
        let rest = kind.as_ref().and_then(|kind| kind.strip_prefix(b"application/grpc"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"+"))
    }
}
