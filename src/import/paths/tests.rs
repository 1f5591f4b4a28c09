use super::{covers, keep_shortest, of_regex};

#[test]
fn regex_has_the_segments_with_which_all_its_paths_begin() {
    for (regex, prefix, is_whole) in [
        ("/", "/", true),
        ("/api(/|$)(.*)", "/api", true),
        ("/api/(.*)", "/api", true),
        ("^/api/v1.0/.*", "/api/v1.0", true),
        ("/api", "/api", false),
        ("/api/users", "/api/users", false),
        ("/a/x*y", "/a", false),
        ("/v[0-9]+/x", "/", false),
        (r"/a\.b/c(/|$)", "/a.b/c", true),
        (r"/a\d/b", "/", false),
        ("/a/b|/c", "/", false),
        ("/a/(b|c)/d", "/a", false),
        (r"/x/\", "/x", false),
        ("x", "/", false),
        ("", "/", false),
    ] {
        assert_eq!(of_regex(regex), (prefix.to_owned(), is_whole), "{regex}");
    }
}

#[test]
fn shortest_paths_stay() {
    let kept = |paths: &[&str]| {
        let mut paths = paths.iter().map(|path| (*path).to_owned()).collect();
        keep_shortest(&mut paths);
        paths.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(kept(&["/a", "/a/b", "/a-b", "/ab", "/a/b/c"]), ["/a", "/a-b", "/ab"]);
    assert_eq!(kept(&["/", "/a"]), ["/"]);
    assert!(covers("/a", "/a/b") && covers("/", "/x") && !covers("/a", "/ab"));
}
