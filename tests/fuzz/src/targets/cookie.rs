//! Cookies: what is found is what an independent reading finds, however the pairs are spread over
//! headers.

use diana_core::identity::Found;
use diana_core::identity::cookie::KIND;
use kit::fake::FakeRequest;

/// Headers, one per line.
pub fn run(input: &[u8]) {
    let source = super::source(&KIND, "sid", &[]);
    let headers: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let with = |request: FakeRequest, header: &&[u8]| request.header("cookie", header);
    let got = super::found(&*source, &headers.iter().fold(FakeRequest::get("/"), with));
    let values: Vec<Vec<u8>> = headers
        .iter()
        .flat_map(|header| header.split(|byte| *byte == b';'))
        .filter_map(|pair| {
            let equals = pair.iter().position(|byte| *byte == b'=')?;
            (form(pair[..equals].trim_ascii()) == b"sid").then(|| pair[equals + 1..].trim_ascii())
        })
        .flat_map(readings)
        .map(form)
        .collect();
    let wanted = match &values[..] {
        values if values.iter().all(Vec::is_empty) => Found::Absent,
        [value] => super::text(value),
        _ => Found::Repeated,
    };
    assert_eq!(got, wanted);
    let joined = headers.join(&b"; "[..]);
    let request = FakeRequest::get("/").header("cookie", joined);
    assert_eq!(super::found(&*source, &request), wanted);
}

/// Percent-decoded, and a space in place of a plus.
fn form(bytes: &[u8]) -> Vec<u8> {
    super::decoded(bytes).iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect()
}

/// Without quotes around it; both ways where nobody knows where they end.
fn readings(value: &[u8]) -> Vec<&[u8]> {
    match value {
        [b'"', inner @ .., b'"'] if inner.contains(&b'\\') => vec![inner, inner],
        [b'"', inner @ .., b'"'] => vec![inner],
        [b'"', inner @ ..] => vec![value, inner],
        _ => vec![value],
    }
}
