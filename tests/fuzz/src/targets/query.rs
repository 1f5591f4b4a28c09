//! Query parameters: neither another spelling of the value nor another order makes another caller.

use diana_request::identity::SourceValue;
use diana_request::identity::query::KIND;
use kit::fake::FakeRequest;

pub fn run(input: &[u8]) {
    let source = super::source(&KIND, "token", &[]);
    let ask = |path: Vec<u8>| {
        let request = FakeRequest { path: Some(path), ..FakeRequest::get("/") };
        super::found(&*source, &request)
    };
    let got = ask(input.into());
    let bare = input.split(|byte| *byte == b'#').next().unwrap_or_default();
    let Some(mark) = bare.iter().position(|byte| *byte == b'?') else {
        assert_eq!(got, SourceValue::Absent, "there is no query");
        return;
    };
    let pairs: Vec<&[u8]> = bare[mark + 1..].split(|byte| *byte == b'&').collect();
    // Parts separated by a semicolon stay separate, since some upstreams separate there.
    let spelled = |pair: &&[u8]| {
        let parts: Vec<Vec<u8>> = pair.split(|byte| *byte == b';').map(respelled).collect();
        parts.join(&b';')
    };
    let other: Vec<Vec<u8>> = pairs.iter().rev().map(spelled).collect();
    assert_eq!(ask([&bare[..=mark], &other.join(&b'&')].concat()), got);
    if let Some(value) = super::value(got) {
        let pair = [b"token=", &super::encoded(&value)[..]].concat();
        assert_eq!(ask([b"/?", &pair[..]].concat()), super::text(&value));
    }
}

/// A name as written, since readers differ about an encoded one, and its value percent-encoded.
fn respelled(part: &[u8]) -> Vec<u8> {
    let mut halves = part.splitn(2, |byte| *byte == b'=');
    let name = halves.next().unwrap_or_default().to_vec();
    let value = halves.next().map(|value| super::encoded(&super::decoded(value)));
    std::iter::once(name).chain(value).collect::<Vec<_>>().join(&b'=')
}
