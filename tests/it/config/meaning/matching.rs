//! The actors of rules, and the requests that they apply to.

use super::super::policy;
use diana_policy::port::Property;
use diana_policy::{Condition, Field, Test};

#[test]
fn actors() {
    let text = "
limits: [{Url: /, rules: [
  {actor: actor, unit: day, rpu: 1}, {actor: all, unit: day, rpu: 1}, {actor: [t, device], unit: day, rpu: 1}]}]
actors: {device: [{query: d}], t: [{header: x-t}, {peer: sha256}]}";
    let policy = policy(text);
    let actors: Vec<&[usize]> =
        policy.limits[0].rules.iter().map(|rule| rule.actor.as_slice()).collect();
    assert_eq!(actors, [&[0][..], &[], &[3, 1]]);
    let counts: Vec<_> =
        policy.actors.iter().map(|actor| (actor.name.as_str(), actor.sources.len())).collect();
    assert_eq!(counts, [("account", 1), ("device", 1), ("address", 1), ("t", 2)]);
}

#[test]
fn matching() {
    let text = "{Url: /, rules: [], match: {methods: [GET, PURGE], hosts: [A.example, '*.b.example'],
        headers: {X-A: v, b: {exact: ''}, c: {prefix: p}, d: {suffix: s}, e: {present: false}, f: {not: n}}}}";
    let matcher = &policy(text).limits[0].matcher;
    let [block] = matcher.any.as_slice() else { panic!("{matcher:?}") };
    assert_eq!(block.methods, ["GET", "PURGE"]);
    assert!(block.hosts[0].matches(b"a.EXAMPLE:80") && block.hosts[1].matches(b"x.b.example"));
    let header = |name: &str, test| Condition { field: Field::Header(name.into()), test };
    let expected = [
        header("x-a", Test::Exact("v".into())),
        header("b", Test::Exact(String::new())),
        header("c", Test::Prefix("p".into())),
        header("d", Test::Suffix("s".into())),
        header("e", Test::Present(false)),
        header("f", Test::Not("n".into())),
    ];
    assert_eq!(block.values, expected);
}

#[test]
fn matching_by_more_than_headers() {
    let text = "{Url: /, rules: [], match: [{query: {a: {contains: c}}, cookies: {b: {in: [z, y]}}},
        {addresses: [10.0.0.0/8]}, {metadata: {n.s: {k: v}}}, {claims: {payload: jwt, values: {plan: gold}}}],
        unless: {methods: [GET]}}";
    let matcher = &policy(text).limits[0].matcher;
    let value = |field, test| Condition { field, test };
    let exact = |text: &str| Test::Exact(text.into());
    let property = |path: &[&str]| {
        Field::Property(Property::new(&[&["metadata", "filter_metadata"], path].concat()))
    };
    let values = [
        vec![
            value(Field::Query("a".into()), Test::Contains("c".into())),
            value(Field::Cookie("b".into()), Test::In(vec!["y".into(), "z".into()])),
        ],
        vec![],
        vec![value(property(&["n.s", "k"]), exact("v"))],
        vec![value(property(&["envoy.filters.http.jwt_authn", "jwt", "plan"]), exact("gold"))],
    ];
    assert_eq!(matcher.any.iter().map(|block| block.values.clone()).collect::<Vec<_>>(), values);
    assert_eq!(matcher.any[1].addresses, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(matcher.unless[0].methods, ["GET"]);
    // A block without conditions always holds.
    assert!(policy("{Url: /, rules: [], match: {}}").limits[0].matcher.is_empty());
}

#[test]
fn several_paths() {
    let urls = |text: &str| -> Vec<Vec<u8>> {
        policy(text).limits[0].urls.iter().map(|url| url.path().to_vec()).collect()
    };
    assert_eq!(urls("{Url: [/b, /a/c], rules: []}"), [b"/b".to_vec(), b"/a/c".to_vec()]);
    assert_eq!(urls("{url: [/], rules: []}"), [b"/".to_vec()]);
}

#[test]
fn exceptions() {
    let text = "{limits: [{Url: /Api, ignore_case: true, rules: [], except: {paths: [/Api/Status]}}],
        except: {addresses: [10.1.2.3/8, 192.0.2.1, '::ffff:10.0.0.0/104', '::ffff:1.2.3.4', '2001:db8::1'],
                 paths: [/Api/Status], headers: {x-probe: '1'}}}";
    let policy = policy(text);
    let addresses: Vec<String> = policy.except.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(
        addresses,
        ["10.0.0.0/8", "192.0.2.1/32", "10.0.0.0/8", "1.2.3.4/32", "2001:db8::1/128"]
    );
    assert!(!policy.except.paths[0].covers(b"/api/status"), "case counts at the top");
    assert!(policy.limits[0].except.paths[0].covers(b"/api/status"), "and not in this entry");
    assert_eq!(policy.except.headers.len(), 1);
}
