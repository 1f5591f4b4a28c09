//! The encoding of header maps in the ABI: a count, the sizes, then names and values, each
//! terminated by NUL.

/// Names are lower case; values are bytes.
pub type Headers = Vec<(String, Vec<u8>)>;

pub fn encode(headers: &Headers) -> Vec<u8> {
    if headers.is_empty() {
        return Vec::new();
    }
    let mut bytes = u32::try_from(headers.len()).unwrap().to_le_bytes().to_vec();
    for (name, value) in headers {
        bytes.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
    }
    for (name, value) in headers {
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.extend(value);
        bytes.push(0);
    }
    bytes
}

/// Decodes a map from a module. Empty if it is malformed, as in Envoy.
pub fn decode(bytes: &[u8]) -> Headers {
    try_decode(bytes).unwrap_or_default()
}

fn try_decode(bytes: &[u8]) -> Option<Headers> {
    let number = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(word.try_into().ok()?) as usize)
    };
    let count = number(0)?;
    let mut start = 4 + count * 8;
    let mut text = |size: usize| {
        let text = bytes.get(start..start + size)?;
        start += size + 1;
        Some(text.to_vec())
    };
    (0..count)
        .map(|index| {
            let name = text(number(4 + index * 8)?)?;
            let value = text(number(8 + index * 8)?)?;
            Some((String::from_utf8_lossy(&name).to_lowercase(), value))
        })
        .collect()
}
