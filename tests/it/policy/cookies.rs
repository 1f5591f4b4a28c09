//! The readings of a cookie's name and value, compared with a reader that works byte by byte.

use std::collections::BTreeSet;

use diana_policy::spelling::cookie::{is_name, pairs, readings, unquoted};
use fastrand::Rng;
use kit::seed;

/// A separator or surrounding character is not part of a name.
#[test]
fn name_with_spaces_signs_or_controls_is_refused() {
    assert!(!is_name(""));
    for code in 0..=0x2ff {
        let letter = char::from_u32(code).unwrap();
        let is_part = !(code <= 0x20 || code == 0x7f || ['=', ';', ','].contains(&letter));
        for name in
            [letter.to_string(), format!("a{letter}"), format!("{letter}b"), format!("a{letter}b")]
        {
            assert_eq!(is_name(&name), is_part, "{name:?}");
        }
    }
}

/// Some upstreams resolve `\` and three octal digits to a byte, and `\` and any other byte to that
/// byte.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let is_octal = |at: usize, most: u8| text.get(at).is_some_and(|it| (b'0'..=most).contains(it));
    let (mut plain, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let is_escape = text[at] == b'\\' && at + 1 < text.len();
        if is_escape && is_octal(at + 1, b'3') && is_octal(at + 2, b'7') && is_octal(at + 3, b'7') {
            let digits = std::str::from_utf8(&text[at + 1..at + 4]).unwrap();
            plain.push(u8::from_str_radix(digits, 8).unwrap());
            at += 4;
        } else {
            let skipped = usize::from(is_escape);
            plain.push(text[at + skipped]);
            at += 1 + skipped;
        }
    }
    plain
}

/// The text within quotes, balanced or not.
fn inner(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', inner @ .., b'"'] | [b'"', inner @ ..] => Some(inner),
        _ => None,
    }
}

fn random(rng: &mut Rng) -> Vec<u8> {
    const LETTERS: &[u8] = b"\"\"\"\\\\\\01237789aA =%+\xff";
    let mut text: Vec<u8> = (0..rng.usize(..9)).map(|_| *rng.choice(LETTERS).unwrap()).collect();
    if rng.bool() {
        text.insert(0, b'"');
        text.extend(rng.bool().then_some(b'"'));
    }
    text
}

#[test]
fn value_has_every_possible_reading() {
    let mut rng = Rng::with_seed(seed::next());
    let mut quoted = 0;
    for _ in 0..20_000 {
        let value = random(&mut rng);
        let found: BTreeSet<Vec<u8>> = readings(&value).map(|it| it.into_owned()).collect();
        let mut wanted = BTreeSet::from([value.clone()]);
        if let Some(inner) = inner(&value) {
            // A reader of balanced quotes may not support unbalanced ones.
            let open = &value[1..];
            wanted.insert(inner.to_vec());
            wanted.extend(inner.contains(&b'\\').then(|| unescaped(inner)));
            wanted.extend(
                (inner.len() < open.len() && inner.contains(&b'\\')).then(|| open.to_vec()),
            );
            quoted += 1;
        }
        let text = String::from_utf8_lossy(&value);
        assert_eq!(found, wanted, "{text}");
        // As the name of a caller it has one value, unless upstreams differ.
        let values: Vec<&[u8]> = unquoted(&value).collect();
        let is_whole = value.len() > 1 && value.ends_with(b"\"");
        let is_unclear = inner(&value).is_some_and(|it| !is_whole || it.contains(&b'\\'));
        assert_eq!(values.len(), 1 + usize::from(is_unclear), "{text}");
        assert_eq!(values[0], inner(&value).filter(|_| is_whole).unwrap_or(&value), "{text}");
    }
    assert!(quoted > 5_000, "too tame: {quoted}");
}

/// Names and values end at the first separator, and exclude surrounding spaces.
#[test]
fn name_has_the_values_of_every_cookie() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..10_000 {
        let names = ["sid", "s%69d", "sid ", " sid", "sid\t", "xsid", "si", "", "s+d", "s d"];
        let parts: Vec<(&str, String)> = (0..rng.usize(..5))
            .map(|_| {
                let value: String =
                    (0..rng.usize(..4)).map(|_| *rng.choice(&['a', '=', '"']).unwrap()).collect();
                (*rng.choice(&names).unwrap(), value)
            })
            .collect();
        let text = |(name, value): &(&str, String)| format!("{name}={value}");
        let header = parts.iter().map(text).collect::<Vec<_>>().join(";");
        let header = if rng.bool() { format!("{header}; sid;; ") } else { header };
        for (wanted, same) in [("sid", "s%69d"), ("s+d", "s d")] {
            let found: Vec<(String, bool)> = pairs(header.as_bytes(), wanted.as_bytes())
                .map(|pair| (String::from_utf8(pair.value.to_vec()).unwrap(), pair.is_plain))
                .collect();
            let oracle: Vec<(String, bool)> = parts
                .iter()
                .filter(|(name, _)| [wanted, same].contains(&name.trim()))
                .map(|(name, value)| {
                    (value.clone(), name.strip_prefix(" ").unwrap_or(name) == wanted)
                })
                .collect();
            assert_eq!(found, oracle, "{header}");
        }
    }
}
