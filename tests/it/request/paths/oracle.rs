//! Every reading of a path, computed individually and without sharing.

use std::collections::HashSet;

/// A byte of a path, or an ambiguous sign.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Slash,
    /// `\`, `%5C`, `%2F`: a slash for some readers.
    Loose,
    /// `;`, `%3B`: for some readers the rest of the segment is not part of its name.
    Cut,
    /// Any other byte, and whether it was percent-encoded.
    Byte(u8, bool),
}

/// A segment of one reader.
#[derive(Clone, Default)]
struct Segment {
    name: Vec<u8>,
    /// Whether it is written in plain bytes between true slashes.
    is_sure: bool,
}

/// Replaces a sign in a name. No configured name has this byte.
const ODD: u8 = 0;

/// All possible readings of `raw`, as names from the top down.
pub fn readings(raw: &str) -> HashSet<Vec<Vec<u8>>> {
    let path = raw.split(['?', '#']).next().unwrap();
    let signs = signs(path.strip_prefix('/').unwrap_or(path).as_bytes());
    let unclear = signs.iter().filter(|sign| matches!(sign, Sign::Loose | Sign::Cut)).count();
    let mut found = HashSet::new();
    for choices in 0..1_u32 << unclear {
        let segments = segments(&signs, choices);
        for resolves in [false, true] {
            walk(&segments, resolves, Vec::new(), &mut found);
        }
    }
    found
}

/// Returns true if a prefix covers any of the readings. `*` is every name that is not empty.
pub fn covers(prefix: &str, ignore_case: bool, readings: &HashSet<Vec<Vec<u8>>>) -> bool {
    let names: Vec<&[u8]> =
        prefix.split('/').filter(|n| !n.is_empty()).map(str::as_bytes).collect();
    let same = |one: &[u8], other: &[u8]| match one {
        b"*" => !other.is_empty(),
        _ if ignore_case => one.eq_ignore_ascii_case(other),
        _ => one == other,
    };
    readings.iter().any(|reading| {
        reading.len() >= names.len()
            && names.iter().zip(reading).all(|(one, other)| same(one, other))
    })
}

/// Returns true if a path has a single spelling.
pub fn is_plain(raw: &str) -> bool {
    let path = raw.split(['?', '#']).next().unwrap();
    let odd = |part: &&str| path.contains(*part);
    let mut segments = path.split('/');
    path.starts_with('/')
        && !["%", "\\", ";", "//"].iter().any(odd)
        && !segments.any(|segment| segment == "." || segment == "..")
}

fn signs(path: &[u8]) -> Vec<Sign> {
    let mut signs = Vec::new();
    let mut at = 0;
    while at < path.len() {
        let code = path.get(at + 1..at + 3).filter(|_| path[at] == b'%');
        let code = code.filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let code = code.map(|code| std::str::from_utf8(code).unwrap());
        let byte = code.map_or(path[at], |code| u8::from_str_radix(code, 16).unwrap());
        at += if code.is_some() { 3 } else { 1 };
        signs.push(match byte {
            b'/' if code.is_none() => Sign::Slash,
            b'/' | b'\\' => Sign::Loose,
            b';' => Sign::Cut,
            _ => Sign::Byte(byte, code.is_some()),
        });
    }
    signs
}

/// The segments of a reader that interprets the ambiguous signs by the bits of `choices`.
fn segments(signs: &[Sign], mut choices: u32) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut here = Segment { is_sure: true, ..Segment::default() };
    let mut cut = false;
    for sign in signs {
        let mut chosen = || {
            let bit = choices & 1 == 1;
            choices >>= 1;
            bit
        };
        let separates = match sign {
            Sign::Slash => true,
            Sign::Loose => chosen(),
            _ => false,
        };
        if separates {
            here.is_sure &= *sign == Sign::Slash;
            segments.push(std::mem::take(&mut here));
            here.is_sure = *sign == Sign::Slash;
            cut = false;
            continue;
        }
        match sign {
            Sign::Cut if chosen() => cut = true,
            Sign::Byte(byte, _) if !cut => here.name.push(*byte),
            _ if !cut => here.name.push(ODD),
            _ => {}
        }
        here.is_sure &= matches!(sign, Sign::Byte(_, false));
    }
    segments.push(here);
    segments
}

/// Follows segments to the end. A reader that resolves dots always resolves plainly written ones.
fn walk(left: &[Segment], resolves: bool, at: Vec<Vec<u8>>, found: &mut HashSet<Vec<Vec<u8>>>) {
    let Some((segment, left)) = left.split_first() else {
        found.insert(at);
        return;
    };
    let name = segment.name.as_slice();
    let dots = matches!(name, b"." | b"..");
    if name.is_empty() || dots && resolves {
        let mut moved = at.clone();
        if name == b".." {
            moved.pop();
        }
        walk(left, resolves, moved, found);
    }
    if !(dots && resolves && segment.is_sure) {
        walk(left, resolves, [at, vec![name.to_vec()]].concat(), found);
    }
}
