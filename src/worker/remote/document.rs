//! The document in a reply of the configuration server.

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use diana_policy::json;
use diana_policy::port::Answer;
use diana_policy::remote::Remote;

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

/// The document of a reply.
pub fn read(remote: &Remote, answer: &Answer<'_>) -> Result<Vec<u8>, Unusable> {
    let failed = |why: &str| Err(Unusable::Failed(why.into()));
    match answer.status {
        Some(200) => extract(remote, answer).map_err(Unusable::Rejected),
        Some(503) => failed("status 503, which Envoy also returns if it cannot connect"),
        Some(504) => failed("status 504, which Envoy also returns after `timeout`"),
        Some(status) => failed(&format!("status {status}")),
        None => failed("the connection was closed early, or the response is far too large"),
    }
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
