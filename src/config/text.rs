//! Bytes to text: refuses at once what the YAML reader would take long over, or explain badly.

use super::problem::Problems;

/// Longest text that is read.
const MAX_BYTES: usize = 1 << 20;

/// Most brackets that are open at once, most directives, and most of `-` and `?` that begin a line.
/// All are far beyond any sense, and the YAML reader takes quadratic time, or much memory, over more.
const MAX_OPEN: usize = 500;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text, if it is not too long and holds only what YAML allows.
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
    let (mut line, mut column) = (1, 1);
    let (mut open, mut directives) = (0_usize, 0_usize);
    // Block indicators at the start of the line, as long as there is nothing else.
    let mut indicators = Some(0);
    for found in text.chars() {
        indicators = match found {
            '\n' => Some(0),
            '-' | '?' | ':' => indicators.map(|count| count + 1),
            ' ' | '\t' => indicators,
            _ => None,
        };
        match found {
            '[' | '{' => open += 1,
            ']' | '}' => open = open.saturating_sub(1),
            '%' if column == 1 => directives += 1,
            _ => {}
        }
        let message = if !is_allowed(found) {
            let code = u32::from(found);
            format!("found the character U+{code:04X}, which YAML allows only escaped")
        } else if open > MAX_OPEN {
            format!("nested too deeply: more than {MAX_OPEN} brackets are open")
        } else if indicators.is_some_and(|count| count > MAX_OPEN) {
            format!("nested too deeply: more than {MAX_OPEN} of `-` and `?` begin a line")
        } else if directives > MAX_OPEN {
            format!("found more than {MAX_OPEN} lines that begin with `%`")
        } else {
            (line, column) = if found == '\n' { (line + 1, 1) } else { (line, column + 1) };
            continue;
        };
        return Err(Problems::one(Some((line, column)), message));
    }
    Ok(text)
}

/// The printable characters of YAML.
fn is_allowed(found: char) -> bool {
    match found {
        '\t' | '\n' | '\r' | '\u{85}' => true,
        _ => !found.is_control() && !matches!(found, BYTE_ORDER_MARK | '\u{fffe}' | '\u{ffff}'),
    }
}
