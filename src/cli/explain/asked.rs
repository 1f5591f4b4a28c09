//! The request to explain.

use std::borrow::Cow;
use std::net::IpAddr;

use diana_policy::address;
use diana_policy::port::{Property, Pseudo, Request, Values};

use crate::arguments::Explain;

/// A request from the command line.
pub struct Asked {
    path: String,
    method: String,
    authority: Option<String>,
    headers: Vec<(String, String)>,
    client: Option<IpAddr>,
}

impl Asked {
    /// The request of these arguments.
    ///
    /// # Errors
    /// The invalid argument.
    pub fn new(explain: &Explain) -> Result<Asked, String> {
        let (mut authority, path) = split(&explain.url)?;
        let mut headers = Vec::new();
        for header in &explain.headers {
            let (name, value) =
                header.split_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                    format!(
                        "found the header `{}`, allowed: a name, a colon and a value",
                        crate::text::plain(header)
                    )
                })?;
            let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
            if name == "host" {
                authority = Some(value);
            } else {
                headers.push((name, value));
            }
        }
        let client = explain.address.as_deref().map(|text| {
            let found = crate::text::plain(text);
            address::parse(text.as_bytes())
                .ok_or(format!("found `{found}`, allowed: an address such as 192.0.2.1"))
        });
        let method = explain.method.to_ascii_uppercase();
        Ok(Asked { path, method, authority, headers, client: client.transpose()? })
    }
}

/// Host and path of a URL, or only a path.
fn split(url: &str) -> Result<(Option<String>, String), String> {
    if url.starts_with('/') {
        return Ok((None, url.into()));
    }
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let rest = rest.ok_or_else(|| {
        let found = crate::text::plain(url);
        format!(
            "found `{found}`, allowed: a path such as /sample, or https:// and a host and a path"
        )
    })?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
    Ok((Some(host.into()), path))
}

impl Request for Asked {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let text = match which {
            Pseudo::Path => Some(&self.path),
            Pseudo::Method => Some(&self.method),
            Pseudo::Authority => self.authority.as_ref(),
        };
        text.map(|text| text.as_bytes().into())
    }

    fn header(&self, name: &str) -> Values<'_> {
        let values = self.headers.iter().filter(|(known, _)| known == name);
        values.fold(Values::None, |values, (_, value)| values.and(value.as_bytes()))
    }

    fn client(&self) -> Option<IpAddr> {
        self.client
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}
