//! Random documents: the reader ends, never panics, and reports a reason for each refusal.

use super::parse;
use fastrand::Rng;

use kit::seed;

const REFERENCE: &str = include_str!("../../../envoy/limits.yaml");

/// Words with a meaning for the reader.
const WORDS: &str = "limits Url url rules actor unit rpu algo scope name burst slices cost absent enforce except response \
    headers match actors time_zone keys device account all second day TB LB local client_address jwt_claim max_delay redis \
    0 -1 1e3 1.5 .nan true ~ '' / /a +08:00 10.0.0.0/8 \"\\u0000\" &a *a !t << | >";

/// Problematic characters.
const SIGNS: [&str; 21] = [
    "#", "%", "---", "...", ": ", "- ", "? ", ", ", "[", "]", "{", "}", "\n", "\n  ", "\t", "\"",
    "'", "é", "\u{85}", "\u{2028}", " ",
];

/// A random word or character.
fn piece(rng: &mut Rng) -> &'static str {
    if rng.u8(..3) == 0 { SIGNS[rng.usize(..SIGNS.len())] } else { word(rng) }
}

fn word(rng: &mut Rng) -> &'static str {
    let words = WORDS.split_whitespace();
    words.clone().nth(rng.usize(..words.count())).unwrap_or("")
}

/// Reads a document. A refusal must contain at least one problem, and positions must be in the
/// text.
fn read(text: &[u8]) {
    let Err(problems) = parse(text) else { return };
    assert!(!problems.list().is_empty(), "refused in silence: {}", String::from_utf8_lossy(text));
    assert!(!problems.to_string().is_empty());
    for problem in problems.list() {
        let Some((line, column)) = problem.position else { continue };
        let text = String::from_utf8_lossy(text);
        let text = text.replace("\r\n", "\n");
        let written = text.split(['\n', '\r']).nth(line - 1);
        let columns = written.map_or(0, |written| written.chars().count() + 1);
        assert!((1..=columns).contains(&column), "{problem}\n{text:?}");
    }
}

#[test]
fn mutated_document_causes_no_panic() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..3_000 {
        let mut text = REFERENCE.as_bytes().to_vec();
        for _ in 0..rng.usize(1..6) {
            let at = rng.usize(0..text.len());
            let end = (at + rng.usize(0..40)).min(text.len());
            match rng.u8(0..5) {
                0 => drop(text.drain(at..end)),
                1 => text[at] = rng.u8(..),
                2 => {
                    let copy = text[at..end].to_vec();
                    let to = rng.usize(0..text.len());
                    text.splice(to..to, copy);
                }
                3 => text.truncate(at.max(1)),
                _ => {
                    text.splice(at..end, piece(&mut rng).bytes());
                }
            }
            if text.is_empty() {
                break;
            }
        }
        read(&text);
    }
}

#[test]
fn random_words_cause_no_panic() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..5_000 {
        let text: String = (0..rng.usize(0..60)).map(|_| piece(&mut rng)).collect();
        read(text.as_bytes());
    }
}

#[test]
fn random_trees_cause_no_panic() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..3_000 {
        let mut text = String::from("{limits: [{Url: /, rules: [");
        tree(&mut rng, 4, &mut text);
        text.push_str("], match: ");
        tree(&mut rng, 4, &mut text);
        text.push_str("}], actors: {x: [");
        tree(&mut rng, 3, &mut text);
        text.push_str("]}, response: ");
        tree(&mut rng, 3, &mut text);
        text.push('}');
        read(text.as_bytes());
    }
}

/// Writes a random tree in flow style, with words for keys and values.
fn tree(rng: &mut Rng, depth: usize, out: &mut String) {
    match if depth == 0 { 0 } else { rng.u8(0..3) } {
        0 => out.push_str(word(rng)),
        1 => {
            out.push('[');
            for _ in 0..rng.usize(0..4) {
                tree(rng, depth - 1, out);
                out.push_str(", ");
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for _ in 0..rng.usize(0..6) {
                out.push_str(word(rng));
                out.push_str(": ");
                tree(rng, depth - 1, out);
                out.push_str(", ");
            }
            out.push('}');
        }
    }
}
