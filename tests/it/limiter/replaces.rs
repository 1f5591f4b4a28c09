//! `replaces` against an oracle: of all rules that would apply, those remain that no other one replaces.

use std::collections::BTreeMap;
use std::rc::Rc;

use diana_limiter::{Explained, Limiter, Verdict, Why};
use fastrand::Rng;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::seed;

/// Paths of entries, and those of requests that only have one reading below them.
const URLS: [(&str, &[&str]); 5] = [
    ("/", &["/", "/a", "/a/b", "/a/b/c", "/d", "/caf%C3%A9"]),
    ("/a", &["/a", "/a/b", "/a/b/c"]),
    ("/a/b", &["/a/b", "/a/b/c"]),
    ("/a/*", &["/a/b", "/a/b/c"]),
    ("/café", &["/caf%C3%A9"]),
];

/// Paths with several readings.
const ODD: [&str; 6] = ["/a%2fb", "/a/../a/b", "//a", "/a;x/b", "/%61/b", "/d/%2e%2e/a/b"];

/// Returns true if conditions surely hold for the headers `x` of a request.
type Holds = fn(&[&str]) -> bool;

const MATCHES: [(&str, Holds); 4] = [
    ("", |_| true),
    ("match: {headers: {x: \"1\"}}, ", |x| !x.is_empty() && x.iter().all(|value| *value == "1")),
    ("match: {headers: {x: {not: {exact: \"1\"}}}}, ", |x| !x.contains(&"1")),
    ("unless: {headers: {x: \"1\"}}, ", |x| !x.contains(&"1")),
];

struct OneRule {
    url: usize,
    conditions: usize,
    /// As written, without `replaces`.
    text: String,
    is_trial: bool,
    /// The numbers of the rules that it replaces.
    replaces: Vec<usize>,
}

struct World(Vec<OneRule>);

impl World {
    fn random(rng: &mut Rng) -> World {
        // Rules replace those behind them in a random order, so there are no circles.
        let count = rng.usize(2..8);
        let mut order: Vec<usize> = (0..count).collect();
        rng.shuffle(&mut order);
        let mut rules: Vec<OneRule> = (0..count).map(|number| one(number, rng)).collect();
        for (place, &number) in order.iter().enumerate() {
            let behind = order[place + 1..].iter().copied().filter(|_| rng.bool());
            rules[number].replaces = behind.collect();
        }
        World(rules)
    }

    fn document(&self, with: bool) -> String {
        let entry = |rule: &OneRule| {
            let names: Vec<String> = rule.replaces.iter().map(|it| format!("r{it}")).collect();
            let replaces = match with && !names.is_empty() {
                true => format!(", replaces: [{}]", names.join(", ")),
                false => String::new(),
            };
            let (url, conditions) = (URLS[rule.url].0, MATCHES[rule.conditions].0);
            let text = &rule.text;
            format!("- {{Url: {url:?}, {conditions}rules: [{{{text}{replaces}}}]}}\n")
        };
        let entries: String = self.0.iter().map(entry).collect();
        format!("limits:\n{entries}actors: {{key: [{{header: x-key}}]}}")
    }
}

fn one(number: usize, rng: &mut Rng) -> OneRule {
    let mut text = format!("name: r{number}, unit: day, rpu: 1000000, scope: local");
    let is_trial = rng.u8(0..5) == 0;
    text += if is_trial { [", shadow: true", ", enforce: 0"][rng.usize(0..2)] } else { "" };
    let actor = ["all", "account", "key"][rng.usize(0..3)];
    text += &format!(", actor: {actor}");
    if actor != "all" && rng.bool() {
        text += ", absent: share";
    }
    if rng.u8(0..4) == 0 {
        text += ", except: {headers: {y: \"1\"}}";
    }
    if rng.u8(0..4) == 0 {
        text += ", plans: {by: [{metadata: [n, plan]}], of: {gold: unlimited, low: {rpu: 900000}}}";
    }
    let (url, conditions) = (rng.usize(0..URLS.len()), rng.usize(0..MATCHES.len()));
    OneRule { url, conditions, text, is_trial, replaces: Vec::new() }
}

/// What each rule did about a request.
#[derive(Debug, Clone, PartialEq)]
enum Did {
    Decided,
    Replaced(String),
    Skipped(&'static str),
}

fn explain(limiter: &mut Limiter, request: &FakeRequest) -> BTreeMap<String, Did> {
    let verdict = limiter.decide_explained(request, 0, &FakeClock::default());
    let Verdict::Admit(_, Some(report)) = verdict else { panic!("{verdict:?}") };
    let did = |rule: Explained| match rule {
        Explained::Decided(record) => (record.rule.to_string(), Did::Decided),
        Explained::Skipped { rule, why } => {
            let did = match why {
                Why::Replaced(by) => Did::Replaced(by.to_string()),
                Why::Absent => Did::Skipped("absent"),
                Why::Plan => Did::Skipped("plan"),
                Why::Exempt => Did::Skipped("exempt"),
                _ => Did::Skipped("other"),
            };
            (rule.to_string(), did)
        }
    };
    report.explained.into_iter().map(did).collect()
}

#[test]
fn rules_that_surely_apply_replace_others() {
    let (mut replaced, mut kept) = (0, 0);
    // With more readings than are followed, a path falls under every entry, and surely under none but the root.
    let endless = "/x%2fy/..;".repeat(500) + &"/..".repeat(500);
    let odd: Vec<&str> = ODD.into_iter().chain([&*endless]).collect();
    for seed in (0..400).map(|_| seed::next()) {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let world = World::random(&mut rng);
        let mut limiters = [true, false]
            .map(|with| super::limiter(&world.document(with), Rc::new(FakeSharedData::default())));
        for _ in 0..20 {
            let is_odd = rng.u8(0..4) == 0;
            let path = if is_odd {
                rng.choice(&odd).copied()
            } else {
                rng.choice(URLS[0].1.iter().copied())
            };
            let path = path.unwrap();
            let mut request = FakeRequest::get(path);
            let x: Vec<&str> = (0..rng.usize(0..3)).map(|_| ["1", "2"][rng.usize(0..2)]).collect();
            request = x.iter().fold(request, |request, value| request.header("x", *value));
            for (name, value) in [("x-account-id", "ann"), ("x-key", "k"), ("y", "1")] {
                if rng.bool() {
                    request = request.header(name, value);
                }
            }
            if let Some(plan) = rng.choice([None, Some("gold"), Some("low")]).unwrap() {
                request = request.property(&["metadata", "filter_metadata", "n", "plan"], plan);
            }
            let [found, plain] = limiters.each_mut().map(|limiter| explain(limiter, &request));
            // The replaced rules, and why: those that replace others come first.
            let mut wanted = plain.clone();
            let mut is_open = vec![true; world.0.len()];
            while let Some(number) = (0..world.0.len()).find(|&number| {
                let is_above = |rule: &OneRule| rule.replaces.contains(&number);
                let above = world.0.iter().zip(&is_open).filter(|(rule, _)| is_above(rule));
                is_open[number] && above.into_iter().all(|(_, is_open)| !is_open)
            }) {
                is_open[number] = false;
                let rule = &world.0[number];
                let name = format!("r{number}");
                let is_sure = (URLS[rule.url].0 == "/" || URLS[rule.url].1.contains(&path))
                    && MATCHES[rule.conditions].1(&x);
                let is_caller = plain[&name] == Did::Decided
                    || plain[&name] == Did::Skipped("plan") && has_caller(rule, &request);
                let is_replaced = matches!(wanted[&name], Did::Replaced(_));
                if !is_sure || !is_caller || rule.is_trial || is_replaced {
                    kept += usize::from(plain[&name] == Did::Decided);
                    continue;
                }
                for other in &rule.replaces {
                    let did = wanted.get_mut(&format!("r{other}")).unwrap();
                    if *did != Did::Skipped("other") && !matches!(did, Did::Replaced(_)) {
                        replaced += usize::from(*did == Did::Decided);
                        *did = Did::Replaced(name.clone());
                    }
                }
            }
            // Several rules may replace one: any of them may be named.
            let bare = |all: &BTreeMap<String, Did>| -> Vec<Did> {
                let one = |did: &Did| match did {
                    Did::Replaced(_) => Did::Replaced(String::new()),
                    did => did.clone(),
                };
                all.values().map(one).collect()
            };
            let document = world.document(true);
            assert_eq!(bare(&found), bare(&wanted), "{request:?}\n{document}\n{plain:?}");
        }
    }
    assert!(replaced > 500 && kept > 500, "{replaced} replaced, {kept} replaced none");
}

fn has_caller(rule: &OneRule, request: &FakeRequest) -> bool {
    use diana_policy::port::{Request, Values};
    let has = |name: &str| !matches!(request.header(name), Values::None);
    rule.text.contains("absent: share")
        || rule.text.contains("actor: all")
        || rule.text.contains("actor: account") && has("x-account-id")
        || rule.text.contains("actor: key") && has("x-key")
}
