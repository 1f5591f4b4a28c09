//! The type of a scalar: by the core schema of YAML 1.2, or as programs in front of Diana read
//! YAML.

mod envoy;
mod yaml_1_1;

use diana_policy::tree::Tree;

/// Whole numbers from this size on are treated as other numbers.
pub const HUGE: f64 = 1e38;

/// The reader of a YAML text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Diana: YAML 1.2.
    Diana,
    /// The tools and the server of Kubernetes, and Helm: YAML 1.1, then JSON.
    Kubernetes,
    /// Envoy's own files: the words of YAML 1.1, whole numbers, and texts, with keys as written.
    Envoy,
}

/// Converts the text of a scalar, plain or quoted. `None` if it does not match its tag.
pub fn read(text: String, is_plain: bool, tag: Option<&str>, dialect: Dialect) -> Option<Tree> {
    let kind = tag.map(|tag| tag.strip_prefix("tag:yaml.org,2002:").unwrap_or_default());
    match kind {
        None if is_plain => Some(plain(text, dialect)),
        Some(kind @ ("null" | "bool" | "int" | "float")) => {
            let tree = plain(text, dialect);
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

/// Converts a key. Keys are kept as written, except by Kubernetes: it converts their values to the
/// text of JSON.
pub fn key(text: String, is_plain: bool, dialect: Dialect) -> String {
    if !is_plain || dialect != Dialect::Kubernetes {
        return text;
    }
    match plain(text.clone(), dialect) {
        Tree::Bool(value) => value.to_string(),
        Tree::Int(value) => value.to_string(),
        Tree::Number(number) => number.parse::<f64>().map_or(text, |number| number.to_string()),
        _ => text,
    }
}

fn plain(text: String, dialect: Dialect) -> Tree {
    if dialect == Dialect::Kubernetes
        && let Some(tree) = yaml_1_1::read(&text)
    {
        return tree;
    }
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Tree::Null,
        "true" | "True" | "TRUE" => Tree::Bool(true),
        "false" | "False" | "FALSE" => Tree::Bool(false),
        _ if dialect == Dialect::Envoy => envoy::read(text),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => Tree::Number(text),
        _ => number(&text).unwrap_or(Tree::Text(text)),
    }
}

/// The number that `text` denotes. A whole number with a leading zero is text.
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

/// `None` if `text` is not a decimal number, `Some(None)` if it is not whole, or huge.
#[expect(clippy::option_option, reason = "a number that is not whole is no mistake here")]
fn decimal(text: &str) -> Option<Option<i128>> {
    let is_digit = |first: char| first.is_ascii_digit() || first == '.';
    let number = text.parse::<f64>().ok().filter(|_| text.starts_with(is_digit))?;
    let is_whole = number.fract() == 0.0 && number < HUGE;
    Some(is_whole.then(|| text.parse().unwrap_or(number as i128)))
}
