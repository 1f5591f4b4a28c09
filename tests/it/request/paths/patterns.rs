//! Wildcards in paths, and the callers that they yield.

use std::collections::HashMap;

use diana_policy::Prefix;
use kit::fake::FakeRequest;

use super::{Rng, covering, index, oracle, spelling};
use crate::limiter::Gate;
use kit::seed;

fn path(written: &str) -> Prefix {
    Prefix::parse(written, false).unwrap()
}

#[test]
fn only_whole_segments_are_wildcards() {
    for (written, plain, names) in [
        ("/v1/orgs/{org}/users/{id}", "/v1/orgs/*/users/*", "org id"),
        ("/v1/*/models", "/v1/*/models", ""),
        ("/files/{rest=**}", "/files", "rest"),
        ("/files/**", "/files", ""),
        ("/**", "/", ""),
        ("/{a}/**", "/*", "a"),
        ("/{org-id}", "/*", "org-id"),
    ] {
        let path = path(written);
        assert_eq!(path.path(), plain.as_bytes(), "{written}");
        assert_eq!(path.names().collect::<Vec<_>>().join(" "), names, "{written}");
        assert!(path.is_pattern(), "{written}");
    }
    for literal in [
        "/a*",
        "/{}",
        "/{1}",
        "/{a}b",
        "/{a b}",
        "/:id",
        "/<id>",
        "/{a=*}",
        "/{a=**}/b",
        "/**/b",
        "/^a$",
        "/café",
    ] {
        let path = path(literal);
        assert!(!path.is_pattern(), "{literal}");
        assert_eq!(path.path(), literal.as_bytes());
        assert_eq!(path.names().next(), None, "{literal}");
    }
    // A name stands for one segment, and `**` for the end.
    assert!(path("/{a}/b/{a}").covers(b"/x/b/{a}"));
    assert!(!path("/{a}/b/{a}").covers(b"/x/b/y"));
    assert!(path("/**/b/**").covers(b"/**/b/y"));
    assert!(!path("/**/b/**").covers(b"/x/b/y"));
}

#[test]
fn wildcard_has_the_segment_at_its_place() {
    let path = path("/v1/orgs/{org}/users/{rest=**}");
    let of = |name: &str, text: &str| {
        path.capture(name, text.as_bytes()).map(|value| String::from_utf8(value.into()).unwrap())
    };
    assert_eq!(of("org", "/v1/orgs/acme/users"), Some("acme".into()));
    assert_eq!(of("org", "/v1/orgs/acme/users/7/keys"), Some("acme".into()));
    assert_eq!(of("rest", "/v1/orgs/acme/users/7/keys"), Some("7/keys".into()));
    assert_eq!(of("rest", "/v1/orgs/acme/users"), Some(String::new()));
    assert_eq!(of("id", "/v1/orgs/acme/users/7"), None);
    for other in ["/v1/orgs/acme", "/v1/orgs//users", "/v1/orgs/acme/user", "/v2/orgs/acme/users"] {
        assert_eq!(of("org", other), None, "{other}");
    }
    assert_eq!(
        path.split(b"/v1/orgs/acme/users/7"),
        Some((&b"/v1/orgs/acme/users"[..], &b"/7"[..]))
    );
}

#[test]
fn entry_applies_once_though_several_of_its_paths_fit() {
    let urls = ["/a/*", "/a/b", "/*/b", "/a", "/a/**"].map(path);
    let index = diana_request::matching::PathIndex::new(
        [(&urls[..], &diana_policy::Match::default())].into_iter(),
    );
    assert_eq!(covering(&index, "/a/b"), [0]);
    assert_eq!(covering(&index, "/a%2fb"), [0]);
}

/// Two requests are of one caller if and only if all readings of both have the same organisation,
/// or if readings of both differ.
#[test]
fn each_value_of_a_wildcard_has_a_count() {
    let rules = "
actors: {org: [{path_param: org}]}
limits: [{Url: '/{org}/hello', rules: [{name: org, actor: org, unit: day, rpu: 2, algo: W, expose: true}]}]";
    let mut random = Rng::with_seed(seed::next());
    let mut gate = Gate::new(rules);
    // `None` are requests whose readings differ.
    let mut admitted: HashMap<Option<String>, u32> = HashMap::new();
    let mut refused = [0, 0];
    for _ in 0..3_000 {
        let raw = match random.u32(..4) {
            0 => format!("/{}/hello/{}", random.u32(..40), random.u32(..3)),
            _ => spelling(&mut random),
        };
        let readings = oracle::readings(&raw);
        if !oracle::covers("/*/hello", false, &readings) {
            assert!(gate.admits(&FakeRequest::get(&raw)), "{raw}");
            continue;
        }
        let segments: Vec<&str> = raw.split(['?', '#']).next().unwrap().split('/').collect();
        let caller = oracle::is_plain(&raw).then(|| segments[1].to_owned());
        let count = admitted.entry(caller.clone()).or_default();
        let admits = gate.admits(&FakeRequest::get(&raw));
        assert_eq!(admits, *count < 2, "{raw} of {caller:?}");
        *count += u32::from(admits);
        refused[usize::from(caller.is_some())] += u32::from(!admits);
    }
    assert!(refused.iter().all(|refused| *refused > 50), "{refused:?}");
    assert!(admitted.len() > 4, "{admitted:?}");
}

/// Admits two requests for each of these groups of paths, and no third one.
fn assert_groups(rules: &str, groups: &[&[&str]]) {
    let mut gate = Gate::new(rules);
    for group in groups {
        for (turn, path) in group.iter().cycle().take(group.len() + 3).enumerate() {
            assert_eq!(gate.admits(&FakeRequest::get(path)), turn < 2, "{path} is number {turn}");
        }
    }
}

#[test]
fn each_path_has_a_count_of_its_own() {
    let rules = |url: &str, more: &str| {
        format!(
            "limits: [{{Url: {url}, each: true{more}, rules: [{{actor: all, unit: day, rpu: 2, algo: W}}]}}]"
        )
    };
    assert_groups(
        &rules("[/hello, /a/b]", ""),
        &[&["/hello", "/hello/", "/hello/x"], &["/a/b", "/a/b/c?hello"], &["/hello;x", "/a%2fb"]],
    );
    assert_groups(
        &rules("'/v1/{org}/users'", ""),
        &[
            &["/v1/acme/users", "/v1/acme/users/7"],
            &["/v1/Acme/users"],
            &["/v1/caf%C3%A9/users", "/v1/caf\u{e9}/users"],
            &["/v1/a%63me/users", "/v1/x/%2e%2e/acme/users"],
        ],
    );
    assert_groups(&rules("'/v1/{org}'", ", ignore_case: true"), &[&["/v1/acme", "/V1/ACME/x"]]);
    assert_groups(&rules("/", ""), &[&["/", "/x"]]);
}

/// Of several paths that cover a request the shortest one counts, in any order of the list, and for a
/// value the shortest one that has it.
#[test]
fn list_of_paths_gives_one_value() {
    let limit = |urls: &str, more: &str, actor: &str| {
        format!(
            "actors: {{org: [{{path_param: org}}]}}
limits: [{{Url: {urls}{more}, rules: [{{actor: {actor}, unit: day, rpu: 2, algo: W}}]}}]"
        )
    };
    let by_value: &[&[&str]] = &[&["/v1/acme", "/v1/acme/x"], &["/v1/other/acme"]];
    for urls in ["[/v1, '/v1/{org}']", "['/v1/*', '/v1/{org}']", "['/v1/*/{org}', '/v1/{org}']"] {
        assert_groups(&limit(urls, "", "org"), by_value);
    }
    for urls in ["['/v1/*/x', '/v1/*']", "['/v1/*', '/v1/*/x']"] {
        assert_groups(&limit(urls, ", each: true", "all"), &[&["/v1/a", "/v1/a/x"], &["/v1/b/x"]]);
    }
    let mut gate = Gate::new(&limit("[/v1, '/v1/{org}']", "", "org"));
    assert!((0..5).all(|_| gate.admits(&FakeRequest::get("/v1"))), "no organisation");
}

#[test]
fn path_beside_an_actor_makes_a_caller_of_both() {
    let mut gate = Gate::new(
        "limits: [{Url: ['/a/*', /b], each: true, rules: [{actor: account, unit: day, rpu: 1, algo: W}]}]",
    );
    let mut admits = |path: &str, account: &str| {
        gate.admits(&FakeRequest::get(path).header("x-account-id", account))
    };
    assert!(admits("/a/1", "ann") && admits("/a/2", "ann") && admits("/b", "ann"));
    assert!(admits("/a/1", "bob"));
    assert!(!admits("/a/1/x", "ann") && !admits("/a/2", "ann") && !admits("/b/x", "ann"));
}

#[test]
fn plan_is_selected_by_the_value_of_a_wildcard() {
    for each in ["", "each: true, "] {
        let mut gate = Gate::new(
            &format!(
                "actors: {{org: [{{path_param: org}}]}}
limits:
  - Url: '/v1/{{org}}'
    {each}rules: [{{actor: org, unit: day, rpu: 1, algo: W, plans: {{of: {{acme: {{rpu: 3}}}}}}}}]"
            )
            .replace("each: true, ", "each: true\n    "),
        );
        let mut count =
            |path: &str| (0..5).filter(|_| gate.admits(&FakeRequest::get(path))).count();
        assert_eq!((count("/v1/acme"), count("/v1/other")), (3, 1), "{each}");
    }
}

#[test]
fn exemption_by_pattern_holds_for_plain_spellings() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 0}]}]
except: {paths: ['/static/*/img']}",
    );
    let mut admits = |path: &str| gate.admits(&FakeRequest::get(path));
    assert!(admits("/static/v1/img") && admits("/static/v2/img/x.png"));
    for path in
        ["/static/img", "/static//img", "/static/v1", "/static/v1%2Fimg", "/static/v1;x/img"]
    {
        assert!(!admits(path), "{path}");
    }
}

#[test]
fn path_with_too_many_readings_is_under_every_pattern() {
    let index = index(&[("/*/hello", false), ("/a/*", true), ("/c/*/*", false)]);
    let odd = "/x%2fy/..;".repeat(500) + "/..".repeat(500).as_str();
    assert_eq!(covering(&index, &odd), [1, 2, 0]);
}
