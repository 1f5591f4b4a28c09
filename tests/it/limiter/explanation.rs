//! An explanation contains as many rules as fit into a header, and the number of the others.

use diana_limiter::{Explained, Why};
use diana_policy::json;
use fastrand::Rng;
use kit::seed;
use serde_json::Value;

/// Maximum size of an explanation in bytes, and the part reserved for the number of omitted rules.
const MOST: usize = 8 << 10;
const END: usize = 32;

/// A rule with an explanation of this number of bytes, including the comma.
fn skipped_rule(bytes: usize) -> Explained {
    let named =
        |length: usize| Explained::Skipped { rule: "r".repeat(length).into(), why: Why::Path };
    let bare = json::ascii(&named(0)).len() + 1;
    let rule = named(bytes - bare);
    assert_eq!(json::ascii(&rule).len() + 1, bytes);
    rule
}

/// The number of explained and of omitted rules.
fn counts(rules: &[Explained]) -> (usize, usize) {
    let text = Explained::all(rules);
    assert!(text.len() <= MOST, "{} bytes", text.len());
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    match all.last().and_then(|last| last["more"].as_u64()) {
        Some(more) => (all.len() - 1, more as usize),
        None => (all.len(), 0),
    }
}

#[test]
fn explanation_fills_the_header_to_the_last_byte() {
    for (bytes, wanted) in [(0, (2, 0)), (1, (1, 1))] {
        let rules = [skipped_rule(4000), skipped_rule(MOST - END - 4000 + bytes)];
        assert_eq!(counts(&rules), wanted);
    }
    assert_eq!(counts(&[]), (0, 0));
}

#[test]
fn explanation_counts_the_rules_that_do_not_fit() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..200 {
        let longest = rng.usize(60..3_000);
        let rules: Vec<Explained> =
            (0..rng.usize(..300)).map(|_| skipped_rule(rng.usize(50..=longest))).collect();
        let mut size = END;
        let fits = |rule: &&Explained| {
            size += json::ascii(&rule).len() + 1;
            size <= MOST
        };
        let fit = rules.iter().take_while(fits).count();
        assert_eq!(counts(&rules), (fit, rules.len() - fit));
    }
}
