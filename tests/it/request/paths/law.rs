//! Exactly the rules that cover a reading apply, each once and in order.

use kit::fake::FakeRequest;

use super::{Rng, covering, index, oracle, spelling};
use crate::limiter::Gate;
use kit::seed;

#[test]
fn entry_covers_any_reading_of_a_path() {
    any_reading([
        ("/a/hello", false),
        ("/hello", false),
        ("/", false),
        ("/a", true),
        ("/Hello", true),
        ("/b/a", false),
        ("/hello", false),
        ("/hello/b", true),
        ("/a/b", false),
    ]);
}

#[test]
fn pattern_covers_any_reading_of_a_path() {
    any_reading([
        ("/*/hello", false),
        ("/a/*", false),
        ("/a/hello", false),
        ("/*/*/b", false),
        ("/*/hello/b", true),
        ("/a/*/hello", true),
        ("/b", false),
        ("/*", false),
        ("/*/b/*", false),
    ]);
}

fn any_reading(urls: [(&str, bool); 9]) {
    let index = index(&urls);
    let mut random = Rng::with_seed(seed::next());
    let mut seen = [0; 9];
    for _ in 0..30_000 {
        let path = spelling(&mut random);
        let readings = oracle::readings(&path);
        let covers = |at: &usize| oracle::covers(urls[*at].0, urls[*at].1, &readings);
        let mut wanted: Vec<usize> = (0..urls.len()).filter(covers).collect();
        wanted.sort_by_key(|at| urls[*at].0.len());
        let found = covering(&index, &path);
        assert_eq!(found, wanted, "{path}");
        found.iter().for_each(|at| seen[*at] += 1);
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn exemptions_hold_for_plain_spellings_only() {
    // Name of the rule, its entry's path, and its exemption.
    const RULES: [(&str, &str, &str); 4] = [
        ("top", "/", "/a/hello"),
        ("entry", "/hello", "/hello/b"),
        ("first", "/a", "/a/b"),
        ("second", "/a", "/a"),
    ];
    let mut gate = Gate::new(
        "limits:
  - {Url: /, except: {paths: [/a/hello]}, rules: [{name: top, actor: all, unit: second, rpu: 9}]}
  - Url: /hello
    except: {paths: [/hello/b]}
    rules: [{name: entry, actor: all, unit: second, rpu: 9}]
  - Url: /a
    rules:
      - {name: first, actor: all, unit: second, rpu: 9, except: {paths: [/a/b]}}
      - {name: second, actor: all, unit: second, rpu: 9, except: {paths: [/a]}}
except: {paths: [/b]}",
    );
    let mut random = Rng::with_seed(seed::next());
    let mut exempt = 0;
    for _ in 0..5_000 {
        let path = spelling(&mut random);
        let (readings, is_plain) = (oracle::readings(&path), oracle::is_plain(&path));
        let covers = |prefix: &str| oracle::covers(prefix, false, &readings);
        let applies = |(name, url, except): (&'static str, &str, &str)| {
            let is_exempt = is_plain && (covers("/b") || covers(except));
            exempt += u32::from(is_exempt);
            (covers(url) && !is_exempt).then(|| format!("diana.ns.rule.{name}.allowed 1"))
        };
        let mut wanted: Vec<String> = RULES.into_iter().filter_map(applies).collect();
        wanted.sort();
        assert!(gate.admits(&FakeRequest::get(&path)), "{path}");
        gate.wait(1_000_000);
        let mut applied = gate.metrics();
        applied.retain(|line| line.contains(".allowed "));
        assert_eq!(applied, wanted, "{path}");
    }
    assert!(exempt > 200, "{exempt} were exempt");
}

#[test]
fn single_rule_limits_the_paths_of_its_prefixes() {
    // It has a separate path through the limiter.
    let mut gate =
        Gate::new("limits: [{Url: [/hello, /a/b], rules: [{actor: all, unit: day, rpu: 0}]}]");
    let mut random = Rng::with_seed(seed::next());
    let mut refused = 0;
    for _ in 0..5_000 {
        let path = spelling(&mut random);
        let readings = oracle::readings(&path);
        let is_covered = ["/hello", "/a/b"].iter().any(|url| oracle::covers(url, false, &readings));
        assert_eq!(!gate.admits(&FakeRequest::get(&path)), is_covered, "{path}");
        refused += u32::from(is_covered);
    }
    assert!((500..4_500).contains(&refused), "{refused} were refused");
}
