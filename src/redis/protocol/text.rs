//! The text of the script without comments and indentation, since it is part of the module and of
//! calls.

use const_sha1::sha1;

const SOURCE: &str = concat!(
    include_str!("script/head.lua"),
    include_str!("script/clock.lua"),
    include_str!("script/terms.lua"),
    include_str!("script/keys.lua"),
    include_str!("script/window.lua"),
    include_str!("script/sliding.lua"),
    include_str!("script/bucket.lua"),
    include_str!("script/ban.lua"),
    include_str!("script/quota.lua"),
    include_str!("script/in_flight.lua"),
    include_str!("script/decide.lua"),
);

/// The script.
pub(super) const TEXT: &[u8] = &{
    let mut text = [0; LENGTH];
    squeeze(SOURCE.as_bytes(), &mut text);
    text
};

/// Its digest, which identifies it once Redis has the text.
pub(super) const DIGEST: &[u8] = &hex(sha1(TEXT).as_bytes());

const LENGTH: usize = squeeze(SOURCE.as_bytes(), &mut [0; SOURCE.len()]);

/// Encodes a digest as hexadecimal digits.
#[allow(clippy::indexing_slicing, reason = "the compiler would tell")]
const fn hex(digest: [u8; 20]) -> [u8; 40] {
    let mut digits = [0; 40];
    let mut at = 0;
    while at < digits.len() {
        let digit = digest[at / 2] >> (4 - at % 2 * 4) & 0xf;
        digits[at] = b"0123456789abcdef"[digit as usize];
        at += 1;
    }
    digits
}

/// Copies `text` without indentation, empty lines and comment lines. Returns the length of the
/// copy.
const fn squeeze(mut text: &[u8], mut to: &mut [u8]) -> usize {
    let (mut length, mut begins) = (0, true);
    while let [byte, rest @ ..] = text {
        match text {
            [b' ' | b'\n', ..] if begins => {}
            [b'-', b'-', ..] if begins => {
                while let [byte, rest @ ..] = text
                    && *byte != b'\n'
                {
                    text = rest;
                }
                continue;
            }
            _ => {
                begins = *byte == b'\n';
                if let [first, free @ ..] = to {
                    (*first, to) = (*byte, free);
                }
                length += 1;
            }
        }
        text = rest;
    }
    length
}
