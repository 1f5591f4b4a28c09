//! Bounds: the last allowed value, and the first that is refused.

use super::{parse, with_rule};
use diana_policy::bloom::Shape;

/// A document for a number. Up to `most` the report does not contain `what`.
struct Bound {
    what: &'static str,
    most: u64,
    document: fn(u64) -> String,
}

fn with_settings(settings: &str) -> String {
    format!("limits: []\n{settings}")
}

fn remote(settings: &str) -> String {
    with_settings(&format!("remote: {{cluster: c, path: /, {settings}}}"))
}

fn letters(count: u64) -> String {
    "x".repeat(count as usize)
}

/// A list of `first` and this number of `items`, within an anchor.
fn anchored(first: &str, item: &str, items: u64) -> String {
    with_settings(&format!("a: &a [{first}{}]", item.repeat(items as usize)))
}

/// A rule with a `quota` of ten permits and the default error.
fn quota(fields: &str) -> String {
    with_rule(&format!("unit: day, algo: W, scope: local, quota: {{{fields}}}"))
}

/// The maximum number of accounts of such a quota in this number of bytes.
fn accounts(bytes: u64) -> u64 {
    let of = |accounts| Shape::new(accounts, 10_000, 10).bytes();
    let (mut fit, mut exceed) = (1, bytes);
    while exceed - fit > 1 {
        let accounts = u64::midpoint(fit, exceed);
        if of(accounts) <= bytes { fit = accounts } else { exceed = accounts }
    }
    assert_eq!(of(fit), bytes, "to the last byte");
    fit
}

fn bounds() -> [Bound; 9] {
    [
        Bound {
            what: "lines that begin with `%`",
            most: 500,
            document: |count| format!("{}---\nlimits: []", "%FOO x\n".repeat(count as usize)),
        },
        // The list counts, and each item that is not a list.
        Bound {
            what: "anchors contain more than",
            most: 99_999,
            document: |count| anchored("", "1,", count),
        },
        // A list within it counts twice, so the count steps over the bound.
        Bound {
            what: "anchors contain more than",
            most: 49_999,
            document: |count| anchored("1,", "[],", count),
        },
        Bound {
            what: "found 33 headers, allowed: at most 32",
            most: 32,
            document: |count| {
                let headers: String = (0..count).map(|number| format!("x-{number}: a,")).collect();
                with_settings(&format!("response: {{headers: {{{headers}}}}}"))
            },
        },
        Bound {
            what: "found 8193 bytes, allowed: at most 8192",
            most: 8192,
            document: |count| with_settings(&format!("response: {{body: {}}}", letters(count))),
        },
        Bound {
            what: "found 65537 bytes, allowed: at most 65536",
            most: 65_536,
            document: |count| remote(&format!("method: POST, body: {}", letters(count))),
        },
        Bound {
            what: "allowed: at most `every`, 2s",
            most: 2000,
            document: |count| remote(&format!("every: 2s, timeout: {count}ms")),
        },
        Bound {
            what: "is too little",
            most: accounts(1 << 20),
            document: |accounts| quota(&format!("accounts: {accounts}, memory: 1MiB")),
        },
        Bound {
            what: "the quotas up to this one",
            most: accounts(384 << 20),
            document: |accounts| quota(&format!("accounts: {accounts}")),
        },
    ]
}

#[test]
fn bounds_are_the_last_allowed_values() {
    for Bound { what, most, document } in bounds() {
        let problems = |number| match parse(document(number).as_bytes()) {
            Ok(_) => String::new(),
            Err(problems) => problems.to_string(),
        };
        let (within, beyond) = (problems(most), problems(most + 1));
        assert!(!within.contains(what), "{most} is allowed: {within}");
        assert!(beyond.contains(what), "{what}: not beyond {most}: {beyond}");
    }
}
