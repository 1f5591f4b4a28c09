//! Percent-encodings with a single reading, so that an exemption holds.

use std::collections::BTreeSet;

use super::readers::{decode, envoy, falls_under, upstream};
use super::{Rng, covering, index};
use crate::limiter::Gate;
use diana_policy::Prefix;
use kit::fake::FakeRequest;

/// Refuses every request that no prefix exempts.
pub fn gate(prefixes: &str) -> Gate {
    Gate::new(&format!(
        "limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 0}}]}}]\nexcept: {{paths: [{prefixes}]}}"
    ))
}

pub fn is_exempt(gate: &mut Gate, path: &[u8]) -> bool {
    gate.admits(&FakeRequest { path: Some(path.into()), ..FakeRequest::get("/") })
}

/// RFC 3986: an encoded unreserved character is the same URI as the character itself. Of the
/// characters that a segment's data may require encoded, `/`, `\` and `;` may be separators for
/// some readers. Control characters are data for no reader.
#[test]
fn exemption_holds_for_bytes_that_are_encoded_as_data() {
    const DATA: &str = " \"#$%&'()*+,:<=>?@[]^`{|}!";
    let mut gate = gate("/static");
    for byte in 0..=u8::MAX {
        for code in [format!("%{byte:02x}"), format!("%{byte:02X}")] {
            let path = format!("/static/a{code}z");
            // A single byte outside ASCII is not valid UTF-8.
            assert_eq!(
                is_exempt(&mut gate, path.as_bytes()),
                DATA.as_bytes().contains(&byte),
                "{path}"
            );
        }
    }
    // Characters outside ASCII, with all bytes of each.
    for letter in ["é", "\u{a0}", "分", "\u{7ff}", "\u{800}", "\u{fffd}", "😀", "\u{10ffff}"] {
        let path: String = letter.bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert!(is_exempt(&mut gate, format!("/static/a{path}").as_bytes()), "{letter}");
    }
}

/// `diana check` proposes the path to write for one that is written as browsers send it.
#[test]
fn exemption_holds_for_the_path_that_check_proposes() {
    for sent in ["/caf%C3%A9", "/a%20b/c", "/100%25", "/%E5%88%86/x", "/%7Bid%7D"] {
        let why = Prefix::parse(sent, false).unwrap_err();
        let proposed = why.split('`').nth(1).unwrap();
        assert!(is_exempt(&mut gate(&format!("'{proposed}'")), sent.as_bytes()), "{sent}: {why}");
    }
    for sent in ["/caf%E9", "/%C0%AF", "/a%2520", "/a%3Fb"] {
        let why = Prefix::parse(sent, false).unwrap_err();
        assert!(why.ends_with("no configured path has this meaning"), "{sent}: {why}");
    }
}

#[test]
fn bytes_that_no_url_has_are_not_exempt() {
    let mut gate = gate("/static");
    for path in [
        &b"/static/\xc0\xaf"[..],
        b"/static/\xe9",
        b"/static/a\tb",
        b"/static/a\x7f",
        b"/static/.. /x",
    ] {
        assert!(!is_exempt(&mut gate, path), "{path:?}");
    }
}

/// A path of pieces, of which some leave a single reading.
fn spelling(random: &mut Rng) -> String {
    const PLAIN: [&str; 14] = [
        "hello",
        "a",
        "b",
        ".x",
        "My%20File.png",
        "caf%C3%A9",
        "%E5%88%86",
        "100%25",
        "c%23",
        "%3F",
        "%2B",
        "%7B",
        "x",
        "%20y",
    ];
    const ODD: [&str; 14] = [
        "..", ".", "%2f", "%5C", ";", "%3b", "%2e%2E", "..%20", "..%3F", "%252f", "%25", "%68ello",
        "%00", "%c0%af",
    ];
    let mut path = String::new();
    for _ in 0..random.u32(1..5) {
        path.push('/');
        for _ in 0..random.choice([1, 1, 1, 2, 2, 0]).unwrap() {
            let is_odd = random.u32(..5) == 0;
            path += random.choice(if is_odd { ODD } else { PLAIN }).unwrap();
        }
    }
    path + random.choice(["", "", "/", "?x=%2f"]).unwrap()
}

#[test]
fn exempt_path_has_one_reading_to_all_readers() {
    const PREFIXES: [&str; 4] = ["/a", "/hello", "/café", "/x/分"];
    let mut gate = gate(&PREFIXES.join(", "));
    let index = index(&PREFIXES.map(|prefix| (prefix, false)));
    let mut random = Rng::with_seed(30);
    let (mut exempt, mut escaped) = (0, 0);
    for _ in 0..4_000 {
        let path = spelling(&mut random);
        if !is_exempt(&mut gate, path.as_bytes()) {
            continue;
        }
        let bare = path.split(['?', '#']).next().unwrap();
        // Names are compared decoded, so this is the path of a reader that does not decode.
        let names = |path: &str| decode(path, |_| true).trim_end_matches('/').to_owned();
        let mut seen = BTreeSet::new();
        for routed in (0..8).map(|settings| envoy(bare, settings)) {
            seen.extend((0..1 << 9).map(|steps| names(&upstream(&routed, steps))));
        }
        assert_eq!(seen, BTreeSet::from([names(bare)]), "{path}");
        // A reader that cuts the query off decoded text still reaches an exempt path, and the same
        // entries.
        let decoded = names(bare);
        let cut = decoded.split(['?', '#']).next().unwrap();
        assert!(PREFIXES.iter().any(|it| falls_under(cut, it)), "{path} is {cut}");
        assert_eq!(
            covering(&index, &path),
            covering(&index, &decoded.replace(['?', '#'], "%3F")),
            "{path}"
        );
        exempt += 1;
        escaped += u32::from(bare.contains('%'));
    }
    assert!(exempt > 200 && escaped > 100, "{exempt} were exempt, {escaped} with escapes");
}
