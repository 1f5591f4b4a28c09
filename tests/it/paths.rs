//! Paths in normal form, and which entries cover them.

use diana::route::Router;
use diana::route::path::{Prefix, normalise};

fn normal(raw: &[u8]) -> String {
    let mut path = Vec::new();
    normalise(raw, &mut path);
    String::from_utf8_lossy(&path).into_owned()
}

#[test]
fn spellings_of_a_path_are_one() {
    for spelling in [
        "/share/qq",
        "/share/qq/",
        "//share//qq",
        "/share/./qq",
        "/share/x/../qq",
        "/../share/qq",
        "/share/qq?to=all",
        "/share/qq#top",
        "/sh%61re/qq",
        "/share%2Fqq",
        "/share%2fqq",
        "/share%5Cqq",
        "/share\\qq",
        "/share;v=1/qq;w=2",
        "/share/x/..;y/qq",
        "/share/%2e/qq",
        "/share/x/%2E%2e/qq",
        "/share/x/.%2e/qq",
        "/%2e%2e/share/qq",
        "/share%3Bx/qq",
        "share/qq",
    ] {
        assert_eq!(normal(spelling.as_bytes()), "/share/qq", "{spelling}");
    }
}

#[test]
fn different_paths_stay_different() {
    for (raw, expected) in [
        ("/", "/"),
        ("", "/"),
        ("/..", "/"),
        ("/a/..", "/"),
        ("/a/../..", "/"),
        ("/a/../../b", "/b"),
        ("/Share/qq", "/Share/qq"),
        ("/share%252Fqq", "/share%2Fqq"),
        ("/share%3Fqq", "/share?qq"),
        ("/share%23qq", "/share#qq"),
        ("/share/qq%", "/share/qq%"),
        ("/share/%4", "/share/%4"),
        ("/share/%zz", "/share/%zz"),
        ("/...", "/..."),
        ("/.a", "/.a"),
        ("/%E5%88%86", "/分"),
    ] {
        assert_eq!(normal(raw.as_bytes()), expected, "{raw}");
    }
}

#[test]
fn a_normal_form_is_normal_unless_it_was_encoded_twice() {
    let mut rng = fastrand::Rng::with_seed(crate::seed::fresh());
    for _ in 0..20_000 {
        let alphabet = b"/\\.;?#%2eE5cfF~a\0\xff";
        let raw: Vec<u8> = (0..rng.usize(0..24)).map(|_| *rng.choice(alphabet).unwrap()).collect();
        let mut once = Vec::new();
        normalise(&raw, &mut once);
        assert!(once.starts_with(b"/") && !once.windows(2).any(|pair| pair == b"//"), "{raw:?}");
        assert!(once.split(|&b| b == b'/').all(|part| part != b"." && part != b".."), "{raw:?}");
        assert!(once.len() <= raw.len() + 1, "{raw:?}");
        if !once.iter().any(|byte| b"%?#;\\".contains(byte)) {
            let mut twice = Vec::new();
            normalise(&once, &mut twice);
            assert_eq!(once, twice, "{raw:?}");
        }
    }
}

#[test]
fn a_very_long_path_takes_time_in_proportion() {
    for piece in ["/", "/a", "/..", "/a/..", ";", "%2f", "."] {
        let raw = piece.repeat(1_000_000 / piece.len());
        let mut path = Vec::new();
        normalise(raw.as_bytes(), &mut path);
        assert!(path.len() <= raw.len() + 1);
    }
}

#[test]
fn a_configured_path_must_be_in_normal_form() {
    assert!(Prefix::parse("/a/b", false).is_ok());
    assert!(Prefix::parse("/a/b/", false).is_ok());
    assert!(Prefix::parse("/分享", false).is_ok());
    for bad in ["", "a", "/a//b", "/a/../b", "/a?b", "/a%20b", "/a;b", "/a\\b"] {
        assert!(Prefix::parse(bad, false).is_err(), "{bad}");
    }
    assert!(Prefix::parse("/a//b", false).unwrap_err().contains("`/a/b`"));
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
    let prefixes: Vec<Prefix> =
        urls.iter().map(|(url, fold)| Prefix::parse(url, *fold).unwrap()).collect();
    let router = Router::new(prefixes.iter());
    let covering = |path: &str| {
        let mut hits = Vec::new();
        router.covering(path.as_bytes(), &mut Vec::new(), &mut hits);
        hits
    };
    assert_eq!(covering("/"), [1, 6]);
    assert_eq!(covering("/samples"), [1, 6]);
    assert_eq!(covering("/sample"), [1, 6, 2, 3, 5]);
    assert_eq!(covering("/SAMPLE/x"), [1, 6, 3]);
    assert_eq!(covering("/sample/deep/er"), [1, 6, 2, 3, 5, 0]);
    // The router finds what the prefixes themselves say.
    for path in ["/", "/a", "/sample", "/sampl", "/sAmple/deep", "/sample/deep", "/other/x/y/z"] {
        let mut said: Vec<usize> =
            (0..urls.len()).filter(|&at| prefixes[at].covers(path.as_bytes())).collect();
        let mut found = covering(path);
        said.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, said, "{path}");
    }
}
