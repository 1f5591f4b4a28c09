//! Decodes and validates text before parsing, since the YAML parser is slow or imprecise for some
//! invalid texts.

use crate::problem::Problems;

/// Maximum size of a text in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of directives, far above any real use.
const MAX_DIRECTIVES: usize = 500;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Decodes the text. It must not be too long, and contain only characters that YAML allows.
pub fn check(bytes: &[u8]) -> Result<&str, Problems> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the text has {} bytes, allowed: at most {MAX_BYTES}", bytes.len());
        return Err(Problems::one(None, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("found a byte that is not UTF-8 at offset {}", error.valid_up_to());
        Problems::one(None, message)
    })?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    printable(text).map(|()| text)
}

/// Checks that a text contains only characters that YAML allows.
pub fn printable(text: &str) -> Result<(), Problems> {
    let (mut line, mut column, mut directives, mut before) = (1, 1, 0_usize, ' ');
    for found in text.chars() {
        if found == '%' && column == 1 {
            directives += 1;
        }
        let message = if !is_allowed(found) {
            let code = u32::from(found);
            format!("found the character U+{code:04X}, which YAML allows only escaped")
        } else if directives > MAX_DIRECTIVES {
            format!("found more than {MAX_DIRECTIVES} lines that begin with `%`")
        } else {
            // A carriage return ends a line, alone or with a following line feed.
            (line, column) = match (before, found) {
                ('\r', '\n') => (line, column),
                (_, '\r' | '\n') => (line + 1, 1),
                _ => (line, column + 1),
            };
            before = found;
            continue;
        };
        return Err(Problems::one(Some((line, column)), message));
    }
    Ok(())
}

/// The printable characters of YAML.
fn is_allowed(found: char) -> bool {
    match found {
        '\t' | '\n' | '\r' | '\u{85}' => true,
        _ => !found.is_control() && !matches!(found, BYTE_ORDER_MARK | '\u{fffe}' | '\u{ffff}'),
    }
}
