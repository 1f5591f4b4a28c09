//! The request that the command explains.

use diana_policy::spelling;
use diana_replay::PlainRequest;

use crate::arguments::ExplainArguments;

/// The request that the arguments of the command describe, at no particular time.
///
/// # Errors
/// Which argument is wrong.
pub fn described(explain: &ExplainArguments) -> Result<PlainRequest, String> {
    let (mut host, path) = split(&explain.url)?;
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
            host = Some(value);
        } else {
            headers.push((name, value));
        }
    }
    let address = explain.address.as_deref().map(|text| {
        let found = crate::text::plain(text);
        spelling::address(text.as_bytes())
            .ok_or(format!("found `{found}`, allowed: an address such as 192.0.2.1"))
    });
    let address = address.transpose()?;
    let route = explain.route.clone();
    let method = explain.method.to_ascii_uppercase();
    Ok(PlainRequest { at: 0, took: 0, status: 200, address, host, method, path, headers, route })
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
