//! The document in a reply of the configuration server.

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use diana_policy::gateways::MOST_GATEWAYS;
use diana_policy::json;
use diana_policy::port::{Answer, GATEWAYS, TAG};
use diana_policy::remote::Remote;
use diana_policy::spelling::header::is_value;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a reply has no document. The text is stable while the cause is the same.
#[derive(Debug)]
pub enum Unusable {
    /// The call failed, or the server responded with an error.
    Failed(String),
    /// The response is not a document.
    Rejected(String),
}

/// A usable reply.
#[derive(Debug)]
pub enum Fetched {
    /// A document, with the server's tag of it.
    Document(Vec<u8>, Option<String>),
    /// The document of this version has not changed.
    Unchanged(u64),
}

/// Reads a reply to a request with the tag of the version `tagged`, or without a tag if that is 0.
pub fn read(remote: &Remote, answer: &Answer<'_>, tagged: u64) -> Result<Fetched, Unusable> {
    let failed = |why: &str| Err(Unusable::Failed(why.into()));
    match answer.status {
        Some(200) => {
            let text = extract(remote, answer).map_err(Unusable::Rejected)?;
            Ok(Fetched::Document(text, tag(remote, answer)))
        }
        Some(304) if tagged != 0 => Ok(Fetched::Unchanged(tagged)),
        Some(503) => failed("status 503, which Envoy also returns if it cannot connect"),
        Some(504) => failed("status 504, which Envoy also returns after `timeout`"),
        Some(status) => failed(&format!("status {status}")),
        None => failed("the connection was closed early, or the response is far too large"),
    }
}

/// The number of gateways in a reply, if its server knows it.
pub fn gateways(answer: &Answer<'_>) -> Option<u64> {
    let text = String::from_utf8((answer.header)(GATEWAYS)?).ok()?;
    text.parse().ok().filter(|number| (1..=MOST_GATEWAYS).contains(number))
}

/// The tag of a reply, weak or strong, as the next request can have it. HTTP has conditions for GET
/// only, and a header of the configuration is sent as it is.
fn tag(remote: &Remote, answer: &Answer<'_>) -> Option<String> {
    let has_own = remote.headers.iter().any(|(name, _)| name == "if-none-match");
    if remote.method != "GET" || has_own {
        return None;
    }
    String::from_utf8((answer.header)(TAG)?).ok().filter(|tag| is_value(tag))
}

fn extract(remote: &Remote, answer: &Answer<'_>) -> Result<Vec<u8>, String> {
    if answer.size > remote.max_size {
        return Err(format!("the response is larger than `max_size`, {} bytes", remote.max_size));
    }
    let mut text = (answer.body)().unwrap_or_default();
    if let Some(pointer) = &remote.value {
        text = json::pointed(&text, pointer)
            .ok_or_else(|| format!("the response has no value at `{pointer}`"))?;
    }
    if remote.base64 {
        text.retain(|byte| !byte.is_ascii_whitespace());
        text = BASE64.decode(&text).map_err(|_| "the document is not valid base64")?;
    }
    if text.trim_ascii().is_empty() {
        return Err("the document is empty".into());
    }
    Ok(text)
}
