//! The entries that cover a path in any spelling.

mod escapes;
mod law;
mod oracle;
mod patterns;
mod readers;

use diana_policy::path::Path;
use diana_policy::{Match, Prefix};
use diana_request::matching::PathIndex;
use fastrand::Rng;

use crate::support::documents::{assert_outcomes, outcome};
use crate::support::steps;

fn index(urls: &[(&str, bool)]) -> PathIndex {
    let parse = |(url, folds): &(&str, bool)| Prefix::parse(url, *folds).unwrap();
    let prefixes = urls.iter().map(parse).collect::<Vec<Prefix>>();
    let always = Match::default();
    PathIndex::new(prefixes.iter().map(|prefix| (std::slice::from_ref(prefix), &always)))
}

/// The entries that cover a path, in order.
fn covering(index: &PathIndex, path: &str) -> Vec<usize> {
    // Earlier hits must not matter.
    let mut hits = vec![7];
    index.covering(Path::of(path.as_bytes()), None, &mut hits);
    hits
}

/// A path of unusual pieces that may match `/hello`, `/a/hello` and similar paths.
fn spelling(random: &mut Rng) -> String {
    const NAMES: [&str; 12] =
        ["hello", "a", "b", "hello", "a", "b", "h%65llo", "HELLO", "%61", "c", "..", ".."];
    const ODD: [&str; 12] =
        ["%2f", "%2F", "\\", "%5c", "%5C", ";", ";x", "%3b", "%3Bx", "%2e", ".%2E", "."];
    let mut path = String::new();
    for _ in 0..random.u32(1..6) {
        path.push('/');
        for _ in 0..random.choice([0, 1, 1, 1, 1, 2, 3, 5]).unwrap() {
            let is_odd = random.u32(..3) == 0 && path.len() < 40;
            path += random.choice(if is_odd { ODD } else { NAMES }).unwrap();
        }
    }
    if path.is_empty() {
        path.push('/')
    }
    path + random.choice(["", "", "", "/", "?", "?/../hello", "#/hello"]).unwrap()
}

/// A document has prefixes, each step a path. The transcript has the entries that cover it, and whether a list of exempt
/// paths takes it out.
#[test]
fn paths_match_their_transcripts() {
    assert_outcomes(concat!(env!("CARGO_MANIFEST_DIR"), "/it/request/paths"), |_, _, text| {
        let (urls, steps) = steps::split(text);
        let mut gate = escapes::gate(urls.trim().trim_matches(['[', ']']));
        let urls: Vec<String> = serde_yaml::from_str(&urls).unwrap();
        let urls: Vec<(&str, bool)> = urls.iter().map(|url| (&**url, false)).collect();
        let index = index(&urls);
        let mut transcript = String::new();
        for (line, keys) in steps {
            let path = steps::text(&keys["path"]);
            let covered = covering(&index, &path).into_iter().map(|at| urls[at].0);
            let covered = covered.collect::<Vec<_>>().join(" ");
            let exempt =
                if escapes::is_exempt(&mut gate, path.as_bytes()) { ", exempt" } else { "" };
            let covered = if covered.is_empty() { "nothing" } else { &covered };
            transcript += &outcome(line, &format!("{covered}{exempt}"));
        }
        transcript
    });
}

#[test]
fn path_with_too_many_readings_is_under_every_entry() {
    let urls = [("/hello", false), ("/a/b", true), ("/c", false)];
    let index = index(&urls);
    let odd = "/x%2fy/..;".repeat(500) + "/..".repeat(500).as_str();
    assert_eq!(covering(&index, &odd), [2, 1, 0]);
    // A long path with many marks, as in nested links, is within the bound.
    let link = "/c/https%3A%2F%2Fexample.com".to_owned() + &"%2Fa%20b;c".repeat(200) + "/x/../d";
    assert_eq!(covering(&index, &link), [2]);
    // Names below a configured path no longer matter when no later segment leads up.
    let settled = "/x/..".repeat(20) + "/c" + &"%2Fa%20b;c".repeat(500);
    assert_eq!(covering(&index, &settled), [2]);
    let wandering = "/c".to_owned() + &"/a%2fb/x;y".repeat(20) + &"/..".repeat(10);
    assert_eq!(covering(&index, &wandering), [2]);
}

#[test]
fn long_path_takes_linear_time() {
    let urls: Vec<String> = (0..1_000).map(|at| format!("/a/{at}")).collect();
    let urls: Vec<(&str, bool)> =
        urls.iter().map(|url| (url.as_str(), url.len() % 2 == 0)).collect();
    let index = index(&urls);
    for piece in
        ["/", "/a", "/..", "/a/..", ";", "%2f", ".", "/a%2f..;/", "\\", "/%2e%2e/a;", "/a//.."]
    {
        let raw = piece.repeat(1_000_000 / piece.len());
        covering(&index, &raw);
        covering(&index, &(raw + &"/%2e%2e".repeat(100)));
    }
}

#[test]
fn configured_path_must_be_normalized() {
    assert!(Prefix::parse("/a/b", false).is_ok());
    assert!(Prefix::parse("/a/b/", false).is_ok());
    assert!(Prefix::parse("/分享", false).is_ok());
    for bad in ["", "a", "/a//b", "/a/../b", "/a?b", "/a%20b", "/a;b", "/a\\b"] {
        assert!(Prefix::parse(bad, false).is_err(), "{bad}");
    }
    for (written, normal) in [
        ("/a//b", "/a/b"),
        ("/a;v=1/b;w", "/a/b"),
        ("/a/./b/.", "/a/b"),
        ("/a/x/../b", "/a/b"),
        ("/x/../../a/b", "/a/b"),
        ("/a/b/..", "/a"),
        ("/a/..", "/"),
        ("/%61\\b?x", "/a/b"),
    ] {
        let why = Prefix::parse(written, false).unwrap_err();
        assert!(why.contains(&format!("write `{normal}`")), "{written}: {why}");
    }
}

#[test]
fn entries_cover_whole_segments_shortest_first() {
    let urls = [
        ("/sample/deep", false),
        ("/", false),
        ("/sample", false),
        ("/Sample", true),
        ("/other", false),
        ("/sample", false),
        ("/", true),
    ];
    let prefixes = urls.map(|(url, folds)| Prefix::parse(url, folds).unwrap());
    let index = index(&urls);
    let covering = |path: &str| covering(&index, path);
    assert_eq!(covering("/"), [1, 6]);
    assert_eq!(covering("/samples"), [1, 6]);
    assert_eq!(covering("/sample"), [1, 6, 2, 3, 5]);
    assert_eq!(covering("/SAMPLE/x"), [1, 6, 3]);
    assert_eq!(covering("/sample/deep/er"), [1, 6, 2, 3, 5, 0]);
    // The index agrees with the prefixes themselves.
    for path in ["/", "/a", "/sample", "/sampl", "/sAmple/deep", "/sample/deep", "/other/x/y/z"] {
        let mut expected: Vec<usize> =
            (0..urls.len()).filter(|&at| prefixes[at].covers(path.as_bytes())).collect();
        let mut found = covering(path);
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{path}");
    }
}
