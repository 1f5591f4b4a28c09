//! The document in an answer of the configuration centre.

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use diana_core::json;
use diana_core::policy::remote::Remote;
use diana_core::port::Answer;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The document, or why there is none, in words that stay the same as long as nothing changes.
pub fn read(remote: &Remote, answer: &Answer<'_>) -> Result<Vec<u8>, String> {
    let status = answer.status.ok_or("the connection broke off, or the answer is far too large")?;
    match status {
        200 => {}
        503 => return Err("status 503, which is also what Envoy says if it cannot connect".into()),
        504 => return Err("status 504, which is also what Envoy says after `timeout`".into()),
        _ => return Err(format!("status {status}")),
    }
    if answer.size > remote.max_size {
        return Err(format!("the answer is larger than `max_size`, {} bytes", remote.max_size));
    }
    let mut text = (answer.body)().unwrap_or_default();
    if let Some(pointer) = &remote.value {
        text = json::pointed(&text, pointer)
            .ok_or_else(|| format!("the answer has nothing at `{pointer}`"))?;
    }
    if remote.base64 {
        text.retain(|byte| !byte.is_ascii_whitespace());
        text = BASE64.decode(&text).map_err(|_| "the document is not base64")?;
    }
    if text.trim_ascii().is_empty() {
        return Err("the document is empty".into());
    }
    Ok(text)
}
