//! Single values: names, durations, sizes.

use std::fmt::Display;

use super::hint;
use super::mapping::Allowed;
use super::node::Node;
use diana_policy::Prefix;
use diana_policy::time::{DURATIONS, Micros, amount};
use diana_policy::tree::Tree;

/// Any text.
pub const TEXT: Allowed = Allowed::Text("text", |_| true);
/// A list of texts.
pub const TEXTS: Allowed = Allowed::List("a list of texts", &TEXT);

/// Maximum length of a name.
pub const LONGEST: usize = 64;

/// A name.
pub const NAME: Allowed = Allowed::Text("1 … 64 of the characters a-z, 0-9, `_` and `-`", is_name);

/// Returns true if `name` is valid.
pub fn is_name(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(plain)
}

/// The name of a rule. In documents that the companion composes, it has the rule's owner in front, a
/// namespace and a policy of Kubernetes.
pub const RULE_NAME: Allowed =
    Allowed::Text("1 … 64 of the characters a-z, 0-9, `_` and `-`", |text| {
        let Some((owner, name)) = text.rsplit_once('/') else { return is_name(text) };
        let is_object = |name: &str, most: usize, others: &[u8]| {
            let is_plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || others.contains(&byte)
            };
            (1..=most).contains(&name.len()) && name.bytes().all(is_plain)
        };
        let is_owner =
            |(space, policy)| is_object(space, 63, b"-") && is_object(policy, 253, b"-.");
        is_name(name) && owner.split_once('/').is_some_and(is_owner)
    });

/// The name of a cluster.
pub const CLUSTER: Allowed =
    Allowed::Text("the name of a cluster in Envoy, up to 255 visible ASCII characters", |text| {
        is_visible(text, 255)
    });

/// The path of a socket. The addresses of Linux have room for 107 bytes.
pub const PIPE: Allowed = Allowed::Text(
    "the path of a listener's pipe in Envoy, or an abstract name such as `@redis`, up to 107 visible ASCII characters",
    |text| is_visible(text, 107) && text != "@",
);

/// The name of an environment variable.
pub const VARIABLE: Allowed =
    Allowed::Text("the name of an environment variable: A-Z, a-z, 0-9 and `_`", |text| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        is_visible(text, 255) && text.bytes().all(is_plain)
    });

/// Returns true if `text` has 1 to `most` bytes and no spaces.
pub fn is_visible(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads a path.
pub fn path(node: &Node<'_>, allowed: &dyn Display, ignore_case: bool) -> Option<Prefix> {
    let path = Prefix::parse(node.text(allowed)?, ignore_case);
    path.map_err(|why| node.problem(format!("{} {why}", node.tree().found()))).ok()
}

/// A number in the allowed range: a whole one, a duration in ticks, a size in bytes, or millionths.
pub fn number(node: &Node<'_>, allowed: &Allowed) -> Option<u64> {
    let (found, min, max) = match *allowed {
        Allowed::Whole(min, max) => (whole(node.tree()), min, max),
        Allowed::Duration(min, max) => (ticks(node.tree()), min, max),
        Allowed::Size(most) => (size(node.tree()), LEAST, most),
        Allowed::Fraction(_, min, max) => (millionths(node.tree()), min, max),
        _ => (None, 0, 0),
    };
    let fits = found.filter(|number| (min..=max).contains(number));
    if fits.is_none() {
        match (allowed, written(node.tree())) {
            (Allowed::Whole(..), Some(number)) => node.problem(format!(
                "found the text {}, allowed: {allowed}; write {number}, without quotes",
                node.tree().found()
            )),
            (Allowed::Duration(..), _) => {
                node.reject_with(&hint::duration(node.tree(), allowed), allowed);
            }
            _ => node.reject(allowed),
        }
    }
    fits
}

fn whole(tree: &Tree) -> Option<u64> {
    match tree {
        Tree::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The whole number in a text.
fn written(tree: &Tree) -> Option<u64> {
    tree.text()?.replace(['_', ',', ' '], "").parse().ok()
}

/// A duration in ticks. `None` if the value is not one, or overflows.
pub fn ticks(tree: &Tree) -> Option<Micros> {
    match tree {
        Tree::Int(0) => Some(0),
        Tree::Text(text) if text == "0" => Some(0),
        Tree::Text(text) => amount(text, &DURATIONS),
        _ => None,
    }
}

/// The minutes of a text such as `20:00`, up to 99 hours.
pub fn minutes(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |part: &str| {
        let is_two = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_two { part.parse::<u32>().ok() } else { None }
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (minutes < 60).then_some(hours * 60 + minutes)
}

const SIZES: [(&str, u64); 2] = [("KiB", 1 << 10), ("MiB", 1 << 20)];
const LEAST: u64 = 1 << 10;

fn size(tree: &Tree) -> Option<u64> {
    amount(tree.text()?, &SIZES)
}

/// A number between 0 and 1, in millionths. `None` if it has more than six digits.
fn millionths(tree: &Tree) -> Option<u64> {
    let Tree::Number(text) = tree else { return None };
    let digits = text.strip_prefix("0.")?;
    let missing = 6_usize.checked_sub(digits.len())?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_plain)?;
    Some(number * 10_u64.pow(missing as u32))
}
