//! Entries by routes: those that a look-up finds are those that apply, in the same order.

use std::fmt::Write;

use diana_policy::path::Path;
use diana_request::matching::{PathIndex, matcher};
use fastrand::Rng;
use kit::fake::FakeRequest;
use kit::seed;

use crate::config::policy;

/// Names of routes, with each other's beginnings and with few slashes.
fn name(rng: &mut Rng) -> String {
    let team = rng.u8(0..4);
    match rng.u8(0..9) {
        0 => String::new(),
        1 => format!("team-{team}.shop.{}", rng.u8(0..3)),
        2 => format!("httproute/team-{team}"),
        3 => format!("httproute/team-{team}/shop/"),
        4 => format!("httproute/team-{team}/shopping/rule/0"),
        5 => format!("/{team}//"),
        6 => format!("grpcroute//{team}/"),
        _ => format!("httproute/team-{team}/shop/rule/{}/match/0/*", rng.u8(0..2)),
    }
}

/// A condition on a name or its beginning, of any length.
fn condition(rng: &mut Rng) -> String {
    let name = name(rng) + "x";
    let name = match rng.u8(0..4) {
        0 => &name[..rng.usize(1..=name.len())],
        _ => &name[..(name.len() - 1).max(1)],
    };
    format!("{{{}: '{name}'}}", rng.choice(["exact", "prefix"]).unwrap())
}

fn block(rng: &mut Rng) -> String {
    let routes: Vec<String> = (0..rng.usize(1..3)).map(|_| condition(rng)).collect();
    let mut routes = routes;
    routes.dedup();
    let method = rng.choice(["", "", ", methods: [GET]", ", methods: [POST]"]).unwrap();
    format!("{{route: [{}]{method}}}", routes.join(", "))
}

fn entry(rng: &mut Rng) -> String {
    const URLS: [&str; 8] =
        ["/", "/", "/", "/a", "/a/b", "[/a, /c]", "/*/b", "/a, ignore_case: true"];
    let conditions = match rng.u8(0..8) {
        0 => String::new(),
        1 => ", match: {methods: [GET]}".into(),
        2 => format!(", match: [{}, {{methods: [GET]}}]", block(rng)),
        3 => format!(", match: [{}, {}]", block(rng), block(rng)),
        4 => format!(", match: {}, unless: {}", block(rng), block(rng)),
        _ => format!(", match: {}", block(rng)),
    };
    format!("- {{Url: {}{conditions}, rules: []}}\n", rng.choice(URLS).unwrap())
}

#[test]
fn entries_that_are_found_by_the_route_are_those_that_apply() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut found, mut left_out) = (0, 0);
    for _ in 0..500 {
        let mut text = String::from("limits:\n");
        for _ in 0..rng.usize(0..60) {
            write!(text, "{}", entry(&mut rng)).unwrap();
        }
        if text == "limits:\n" {
            text = "limits: []".into();
        }
        let limits = policy(&text).limits;
        let entries = limits.iter().map(|limit| (limit.urls.as_slice(), &limit.matcher));
        let index = PathIndex::new(entries);
        for _ in 0..20 {
            let path =
                rng.choice(["/", "/a", "/A/b", "/a/b/c", "/c//a", "/x/b", "/a%2fb"]).unwrap();
            let mut request = FakeRequest::get(path);
            if rng.u8(0..8) > 0 {
                request = request.routed(&name(&mut rng));
            }
            // Earlier hits must not matter.
            let (mut all, mut some) = (vec![7], vec![7]);
            index.covering(Path::of(path.as_bytes()), None, &mut all);
            index.covering(Path::of(path.as_bytes()), Some(&request), &mut some);
            let applies = |entry: &&usize| matcher::holds(&limits[**entry].matcher, &request);
            let expected: Vec<&usize> = all.iter().filter(applies).collect();
            assert_eq!(some.iter().filter(applies).collect::<Vec<_>>(), expected, "{path}: {text}");
            found += expected.len();
            left_out += all.len() - some.len();
        }
    }
    assert!(found > 5_000 && left_out > 10_000, "{found} {left_out}");
}
