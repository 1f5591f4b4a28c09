//! Percent-encodings with a single reading, so that an exemption holds.

use std::collections::BTreeSet;

use super::readers::{decode, envoy, falls_under, upstream};
use super::{Rng, covering, index};
use crate::limiter::Gate;
use diana_policy::Prefix;
use kit::fake::FakeRequest;

/// Refuses every request that no prefix exempts.
fn gate(prefixes: &str) -> Gate {
    Gate::new(&format!(
        "limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 0}}]}}]\nexcept: {{paths: [{prefixes}]}}"
    ))
}

fn is_exempt(gate: &mut Gate, path: &[u8]) -> bool {
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

#[test]
fn exemption_holds_for_paths_as_browsers_send_them() {
    let mut gate = gate("/static, /café, /a b/c, '/100%', '/@me'");
    for path in [
        "/static/My%20File.png",
        "/static/caf%C3%A9",
        "/static/caf%c3%a9/",
        "/static/.hidden%20file",
        "/static/...x/%E5%88%86.png",
        "/static/100%25",
        "/static/100%25off",
        "/static/a%2Bb%3D1",
        "/static/c%23.pdf",
        "/static/what%3F?x=%2e%2e/",
        "/static/%5B1%5D#%2f",
        "/caf%C3%A9",
        "/caf%c3%a9/menu?day=1",
        "/a%20b/c",
        "/a%20b/c/d%20e",
        "/100%25",
        "/%40me/x",
    ] {
        assert!(is_exempt(&mut gate, path.as_bytes()), "{path}");
    }
    for path in ["/caf%C3%A8", "/caf", "/caf%C3%A9s", "/CAF%C3%A9", "/a%20b", "/100%25x", "/"] {
        assert!(!is_exempt(&mut gate, path.as_bytes()), "{path}");
    }
}

/// `diana check` proposes the configured path for a path in the encoding of browsers.
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
fn exemption_fails_where_readers_may_differ() {
    let mut gate = gate("/static, /café");
    for path in [
        // Double encodings.
        "/static/%252e%252e/x",
        "/static/%252E%252E%252Fx",
        "/static/..%252fx",
        "/static/%25%32%66x",
        "/static/%2525",
        "/static/a%2541",
        "/static/100%2525",
        "/static/caf%25C3%25A9",
        // Overlong and broken UTF-8.
        "/static/%C0%AF..%C0%AFx",
        "/static/%c0%ae%c0%ae/x",
        "/static/%C1%9C",
        "/static/%E0%80%AFx",
        "/static/%F0%80%80%AFx",
        "/static/%ED%A0%80",
        "/static/%F4%90%80%80",
        "/static/caf%E9",
        "/static/%C3",
        "/static/%A9",
        "/caf%E9",
        // Slashes, dots, parameters, control characters.
        "/static/%2e%2e/x",
        "/static/.%2E/x",
        "/static/x%2e",
        "/static/My%20File%2epng",
        "/static/x%2fy",
        "/static/x%2Fy",
        "/static/x%5cy",
        "/static/x%5Cy",
        "/static/x%3by",
        "/static/x%3By",
        "/static/x%00",
        "/static/x%0d%0ay",
        "/static/x%09",
        "/static/x%7F",
        "/static/x%C2%85y",
        // Invalid escapes.
        "/static/x%",
        "/static/x%2",
        "/static/x%zz",
        "/static/x%u002fy",
        "/static/x% 0",
        "/static/x%+f",
        // Next to a required encoding.
        "/static/a%20b\\c",
        "/static/a%20b;c",
        "/static/a%20b//c",
        "/static//a%20b",
        "/static/a%20b/../x",
        "/static/a%20b/./x",
        "/static/a%20b/..",
        "//static/a%20b",
        "static/a%20b",
        // Dots for a reader that trims names, or cuts decoded text at a query.
        "/static/..%20/x",
        "/static/%20../x",
        "/static/.%20./x",
        "/static/.%20/x",
        "/static/%20/x",
        "/static/..%C2%A0/x",
        "/static/..%3Fx",
        "/static/..%23",
        "/static/x/..%3F/y",
    ] {
        assert!(!is_exempt(&mut gate, path.as_bytes()), "{path}");
    }
    for path in [
        &b"/static/\xc0\xaf"[..],
        b"/static/\xe9",
        b"/static/a\tb",
        b"/static/a\x7f",
        b"/static/.. /x",
    ] {
        assert!(!is_exempt(&mut gate, path), "{path:?}");
    }
    assert!(is_exempt(&mut gate, "/static/café".as_bytes()));
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
