//! What a scalar is, by the core schema of YAML 1.2.

use diana_core::tree::Tree;

/// What the text of a scalar is, plain or in quotes; nothing if it is not what its tag says.
pub fn read(text: String, is_plain: bool, tag: Option<&str>) -> Option<Tree> {
    let kind = tag.map(|tag| tag.strip_prefix("tag:yaml.org,2002:").unwrap_or_default());
    match kind {
        None if is_plain => Some(plain(text)),
        Some(kind @ ("null" | "bool" | "int" | "float")) => {
            let tree = plain(text);
            let fits = match tree {
                Tree::Null => kind == "null",
                Tree::Bool(_) => kind == "bool",
                Tree::Int(_) => kind == "int" || kind == "float",
                Tree::Number(_) => kind == "float",
                _ => false,
            };
            fits.then_some(tree)
        }
        _ => Some(Tree::Text(text)),
    }
}

fn plain(text: String) -> Tree {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Tree::Null,
        "true" | "True" | "TRUE" => Tree::Bool(true),
        "false" | "False" | "FALSE" => Tree::Bool(false),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => Tree::Number(text),
        _ => number(&text).unwrap_or(Tree::Text(text)),
    }
}

/// The number that `text` spells. A leading zero makes text of a whole one.
fn number(text: &str) -> Option<Tree> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_padded = digits.len() > 1 && digits.starts_with('0');
    if is_padded && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole = match digits.split_at_checked(2) {
        Some(("0x", digits)) => Some(based(digits, 16)?),
        Some(("0o", digits)) => Some(based(digits, 8)?),
        Some(("0b", digits)) => Some(based(digits, 2)?),
        _ => decimal(digits)?,
    };
    Some(match whole {
        Some(whole) => Tree::Int(if negative { -whole } else { whole }),
        None => Tree::Number(text.into()),
    })
}

fn based(digits: &str, radix: u32) -> Option<i128> {
    let has_sign = digits.starts_with(['+', '-']);
    i128::from_str_radix(digits, radix).ok().filter(|_| !has_sign)
}

/// Nothing outside if `text` is no decimal number, nothing inside if it is not whole, or huge. No
/// float takes part: to read and write them would take 40 KB of the module.
#[expect(clippy::option_option, reason = "a number that is not whole is no mistake here")]
fn decimal(text: &str) -> Option<Option<i128>> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(Some(0));
    }
    let point = i64::from(exponent) + whole.len() as i64;
    let zeros = u32::try_from(point - significant.len() as i64).ok();
    let power = zeros.and_then(|zeros| 10_i128.checked_pow(zeros));
    let number: Option<i128> = significant.parse().ok();
    Some(number.zip(power).and_then(|(number, power)| number.checked_mul(power)))
}
