//! Cookies: the result equals that of an independent reader, for any distribution of pairs over
//! headers.

use diana_request::identity::SourceValue;
use diana_request::identity::cookie::KIND;
use kit::fake::FakeRequest;

/// Headers, one per line.
pub fn run(input: &[u8]) {
    let source = super::source(&KIND, "sid", &[]);
    let headers: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let with = |request: FakeRequest, header: &&[u8]| request.header("cookie", header);
    let got = super::found(&*source, &headers.iter().fold(FakeRequest::get("/"), with));
    let values: Vec<(Vec<u8>, bool)> = headers
        .iter()
        .flat_map(|header| header.split(|byte| *byte == b';'))
        .filter_map(|pair| {
            let equals = pair.iter().position(|byte| *byte == b'=')?;
            let (key, value) = (&pair[..equals], pair[equals + 1..].trim_ascii());
            let is_sure = [&b"sid"[..], b" sid"].contains(&key);
            may_be_meant(key)
                .then(|| readings(value).into_iter().map(move |it| (form(it), is_sure)))
        })
        .flatten()
        .collect();
    let wanted = match &values[..] {
        values if values.iter().all(|(value, _)| value.is_empty()) => SourceValue::Absent,
        [(value, true)] => super::text(value),
        _ => SourceValue::Unclear,
    };
    assert_eq!(got, wanted);
    let joined = headers.join(&b";"[..]);
    let request = FakeRequest::get("/").header("cookie", joined);
    assert_eq!(super::found(&*source, &request), wanted);
}

/// Returns true if some reader takes a key for `sid`: without spaces, up to a NUL, or up to the
/// bracket of an array.
fn may_be_meant(key: &[u8]) -> bool {
    let key = form(key.trim_ascii());
    let text = key.split(|byte| *byte == 0).next().unwrap_or_default();
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    let text = &text[spaces..];
    text == b"sid" || text.starts_with(b"sid[")
}

/// Percent-decoded, with a space in place of a plus.
fn form(bytes: &[u8]) -> Vec<u8> {
    super::decoded(bytes).iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect()
}

/// Without surrounding quotes. Both readings if their end is ambiguous.
fn readings(value: &[u8]) -> Vec<&[u8]> {
    match value {
        [b'"', inner @ .., b'"'] if inner.contains(&b'\\') => vec![inner, inner],
        [b'"', inner @ .., b'"'] => vec![inner],
        [b'"', inner @ ..] => vec![value, inner],
        _ => vec![value],
    }
}
