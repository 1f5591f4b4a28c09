//! What keys mean, and their defaults.

use super::{policy, rule, with_rule};
use diana_core::algorithm::Form;
use diana_core::policy::{
    Absent, Accepted, Ban, BodyPiece, Change, ChangeDay, Condition, Field, LimitFields, Scope,
    Summer, Test, Zone,
};
use diana_core::port::Property;
use diana_core::time::{SECOND, Unit};

#[test]
fn defaults() {
    let policy = policy(&with_rule("rpu: 10"));
    let rule = &policy.limits[0].rules[0];
    assert_eq!((rule.algo, rule.scope, rule.absent), ("TB", Scope::Gateway, Absent::Skip));
    assert_eq!((rule.enforce, rule.shadow, rule.expose), (100, false, true));
    assert_eq!((rule.quota.cost, rule.quota.burst, rule.quota.zone), (1, None, Zone::UTC));
    assert_eq!((rule.response.status, rule.response.headers.len()), (503, 0));
    assert!(
        rule.except.is_empty() && policy.except.is_empty() && policy.limits[0].except.is_empty()
    );
    let names: Vec<&str> = policy.actors.iter().map(|actor| actor.name.as_str()).collect();
    let sources: Vec<usize> = policy.actors.iter().map(|actor| actor.sources.len()).collect();
    assert_eq!((names, sources), (vec!["account", "device", "address"], vec![1, 2, 1]));
    assert_eq!((policy.keys, policy.shadow, policy.log_refused), (100_000, false, false));
    assert_eq!((policy.namespace, policy.accepted), (None, Accepted::default()));
}

#[test]
fn every_key_of_a_rule() {
    let rule = rule(&with_rule(
        "actor: [account, device], unit: minute, rpu: 7, algo: token bucket, scope: local, name: n-1_x,
         cost: 2, burst: 9, absent: deny, enforce: 5, shadow: true, expose: false,
         except: {paths: [/a]}, response: {status: 429}",
    ));
    assert_eq!(
        (rule.actor.as_slice(), rule.quota.unit, rule.quota.rpu),
        (&[0, 1][..], Unit::Minute, 7)
    );
    assert_eq!((rule.algo, rule.scope, rule.name.as_str()), ("TB", Scope::Local, "n-1_x"));
    assert_eq!((rule.quota.cost, rule.quota.burst, rule.absent), (2, Some(9), Absent::Deny));
    assert_eq!((rule.enforce, rule.shadow, rule.expose), (5, true, false));
    assert_eq!((rule.except.paths.len(), rule.response.status), (1, 429));
}

#[test]
fn costs_in_requests() {
    let told = |more: &str| {
        let fields = format!("rpu: 10, cost: {{metadata: [a, b], max: 5{more}}}");
        let rule = rule(&with_rule(&fields));
        let told = rule.told.unwrap();
        (rule.quota.cost, told.source.kind, told.is_text, told.default)
    };
    assert_eq!(told(""), (5, "metadata", false, 1));
    assert_eq!(told(", type: number, default: 5"), (5, "metadata", false, 5));
    assert_eq!(told(", type: text"), (5, "metadata", true, 1));
}

#[test]
fn daily_quotas_are_made_for_the_requests_that_permits_suffice_for() {
    let shape = |fields: &str| {
        let fields =
            format!("unit: day, algo: W, scope: local, quota: {{accounts: 1000}}, {fields}");
        rule(&with_rule(&fields)).daily.unwrap()
    };
    let counts = shape("rpu: 600, cost: 200");
    assert_eq!(counts.layout(), shape("rpu: 3").layout());
    assert_ne!(counts.layout(), shape("rpu: 600").layout());
}

#[test]
fn bans() {
    let ban = |more: &str| {
        let fields = format!("rpu: 10, ban: {{after: 5, within: 100ms, for: 1m{more}}}");
        rule(&with_rule(&fields)).ban.unwrap()
    };
    let minute = 60 * SECOND;
    let (after, within, period) = (5, SECOND / 10, minute);
    let plain = Ban { after, within, period, max: minute, halve_after: minute };
    assert_eq!(ban(""), plain);
    let (max, halve_after) = (60 * minute, 60 * minute);
    assert_eq!(ban(", max: 1h"), Ban { max, halve_after, ..plain });
    assert_eq!(ban(", max: 1h, halve_after: 60s"), Ban { max, halve_after: minute, ..plain });
    assert_eq!(rule(&with_rule("rpu: 10")).ban, None);
    // Every number makes it another ban, and so does another rule.
    let fingerprints =
        ["", ", max: 2m", ", max: 2m, halve_after: 1m"].map(|more| ban(more).fingerprint(1));
    assert!(fingerprints[0] != fingerprints[1] && fingerprints[1] != fingerprints[2]);
    assert_ne!(fingerprints[0], plain.fingerprint(2));
}

#[test]
fn hot_keys() {
    let hot =
        |text: &str| rule(&with_rule(&format!("hot: {{over: 9, per: 1h{text}}}"))).hot.unwrap();
    let found = hot("");
    assert_eq!((found.over, found.per), (9, 3_600_000_000));
    assert_eq!((found.header, found.top, found.reveal), (None, 10, false));
    let found = hot(", header: X-Hot_Key, top: 100, reveal: true");
    assert_eq!((found.header.as_deref(), found.top, found.reveal), (Some("x-hot_key"), 100, true));
}

#[test]
fn every_key_of_an_algorithm_reaches_it() {
    for entry in diana_core::algorithm::REGISTRY {
        for key in entry.keys {
            let base = format!("algo: {}, unit: second, rpu: 50", entry.long);
            let (text, value) = match key.form {
                Form::Number => ("9", 9),
                Form::Duration => ("900ms", 900_000),
            };
            // It means something in a token bucket only beside `max_delay`.
            let base =
                if key.name == "max_queue" { format!("{base}, max_delay: 1s") } else { base };
            let mut with = rule(&with_rule(&format!("{base}, {}: {text}", key.name)));
            assert_eq!(*(key.field)(&mut with.quota), Some(value), "{}", key.name);
            assert_ne!(rule(&with_rule(&base)).quota, with.quota, "{}", key.name);
        }
    }
}

#[test]
fn durations() {
    let texts = ["0", "'0'", "0ms", "0h", "1ms", "007ms", "20000ms", "20s", "5s"];
    let ticks = [0, 0, 0, 0, 1_000, 7_000, 20_000_000, 20_000_000, 5_000_000];
    for (text, ticks) in texts.into_iter().zip(ticks) {
        let rule = rule(&with_rule(&format!("max_delay: {text}")));
        assert_eq!(rule.quota.max_delay, Some(ticks), "{text}");
    }
}

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
    // Everything meets a block without conditions.
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

#[test]
fn responses_are_merged_field_by_field() {
    let text = r#"
limits:
- Url: /
  response: {status: 429, headers: {X-A: b}}
  rules:
  - {actor: all, unit: day, rpu: 1}
  - {actor: all, unit: day, rpu: 1, response: {body: "a\nb", status: 599}}
- {Url: /b, rules: [{actor: all, unit: day, rpu: 1}]}
response: {body: '', content_type: "text/html; charset=utf-8", headers: {x-top: t}}"#;
    let policy = policy(text);
    let responses: Vec<_> = policy
        .limits
        .iter()
        .flat_map(|limit| &limit.rules)
        .map(|rule| {
            let response = &rule.response;
            (response.status, response.body.as_slice(), response.headers[0].0.as_str())
        })
        .collect();
    let text = [BodyPiece::Text("a\nb".into())];
    assert_eq!(responses, [(429, &[][..], "x-a"), (599, &text, "x-a"), (503, &[], "x-top")]);
    let types =
        policy.limits.iter().flat_map(|limit| &limit.rules).map(|rule| &rule.response.content_type);
    assert!(types.into_iter().all(|name| name == "text/html; charset=utf-8"));
}

#[test]
fn what_answers_tell() {
    let response = |response: &str| {
        let text = format!("{{limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1, response: {response}}}]}}],
            response: {{problem: true, jitter: 1500ms, fields: x-ratelimit, body: '{{id}}'}}}}");
        policy(&text).limits[0].rules[0].response.clone()
    };
    let outer = response("{}");
    assert!(outer.is_problem);
    assert_eq!((outer.jitter, outer.fields), (3 * SECOND / 2, LimitFields::XRateLimit));
    assert_eq!(outer.body, [BodyPiece::Id]);
    let inner = response(
        "{problem: false, jitter: 0, fields: ietf, body: '{a{rule}: {retry_after}{limit}{remaining}}'}",
    );
    assert!(!inner.is_problem);
    assert_eq!((inner.jitter, inner.fields), (0, LimitFields::Ietf));
    let text = |text: &str| BodyPiece::Text(text.into());
    let pieces = [
        text("{a"),
        BodyPiece::Rule,
        text(": "),
        BodyPiece::RetryAfter,
        BodyPiece::Limit,
        BodyPiece::Remaining,
        text("}"),
    ];
    assert_eq!(inner.body, pieces);
}

#[test]
fn time_zones() {
    for (text, seconds) in [
        ("Z", 0),
        ("UTC", 0),
        ("'+00:00'", 0),
        ("+08:00", 28_800),
        ("\"-14:00\"", -50_400),
        ("+14:00", 50_400),
        ("-03:30", -12_600),
    ] {
        let text = format!(
            "{{limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1}}]}}], time_zone: {text}}}"
        );
        assert_eq!(policy(&text).limits[0].rules[0].quota.zone, Zone::ahead(seconds), "{text}");
    }
}

#[test]
fn time_zones_with_summer_time() {
    let weekday = |month, nth, weekday| ChangeDay::Weekday { month, nth, weekday };
    let change = |day, at| Change { day, at };
    let summer = |standard, ahead, begins, ends| Zone {
        standard,
        summer: Some(Summer { ahead, begins, ends }),
    };
    for (text, zone) in [
        ("JST-9", Zone::ahead(32_400)),
        ("<+0330>-3:30", Zone::ahead(12_600)),
        ("UTC0", Zone::UTC),
        ("ABC1:02:03", Zone::ahead(-3_723)),
        (
            "CET-1CEST,M3.5.0,M10.5.0/3",
            summer(
                3_600,
                7_200,
                change(weekday(3, 5, 0), 7_200),
                change(weekday(10, 5, 0), 10_800),
            ),
        ),
        (
            "<-02>2<-01>+1,M3.5.0/-1,J300/26:30:15",
            summer(
                -7_200,
                -3_600,
                change(weekday(3, 5, 0), -3_600),
                change(ChangeDay::Common(300), 95_415),
            ),
        ),
        (
            "IST-1GMT0,0/+167,365",
            summer(
                3_600,
                0,
                change(ChangeDay::Since(0), 601_200),
                change(ChangeDay::Since(365), 7_200),
            ),
        ),
    ] {
        assert_eq!(kit::zones::zone(text), zone, "{text}");
    }
}

#[test]
fn units() {
    for (text, unit, name) in [
        ("second", Unit::Second, "second"),
        ("60s", Unit::Minute, "minute"),
        ("60000ms", Unit::Minute, "minute"),
        ("60m", Unit::Hour, "hour"),
        ("24h", Unit::Day, "day"),
        ("1d", Unit::Day, "day"),
        ("7d", Unit::Week, "week"),
        ("168h", Unit::Week, "week"),
        ("week", Unit::Week, "week"),
        ("month", Unit::Month, "month"),
        ("1s", Unit::Second, "second"),
        ("7s", Unit::Other(7 * SECOND), "7s"),
        ("1500ms", Unit::Other(1_500_000), "1500ms"),
        ("90m", Unit::Other(5_400 * SECOND), "90m"),
        ("48h", Unit::Other(172_800 * SECOND), "2d"),
        ("31d", Unit::Other(31 * 86_400 * SECOND), "31d"),
    ] {
        let entry =
            format!("limits: [{{Url: /, rules: [{{actor: all, unit: {text}, rpu: 9, algo: W}}]}}]");
        let rule = &policy(&entry).limits[0].rules[0];
        assert_eq!(
            (rule.quota.unit, &*rule.name),
            (unit, &*format!("root-all-{name}-w")),
            "{text}"
        );
    }
}

#[test]
fn settings() {
    let policy = policy(
        "{limits: [], shadow: true, namespace: Shop_1-a, keys: 10000000, log: refused,
        accepted: {headers: true, filter_state: true}}",
    );
    assert_eq!(
        (policy.shadow, policy.namespace.as_deref(), policy.keys),
        (true, Some("Shop_1-a"), 10_000_000)
    );
    assert_eq!(
        (policy.log_refused, policy.accepted),
        (true, Accepted { headers: true, filter_state: true })
    );
}

#[test]
fn tables_fit_into_a_vm() {
    let rules =
        "{actor: account, unit: day, rpu: 9, algo: SW, slices: 60, scope: local},".repeat(40);
    let with = |keys: &str| format!("{{limits: [{{Url: /, rules: [{rules}]}}]{keys}}}");
    // The default gives way; what was asked for is a problem that names what would do.
    assert!(policy(&with("")).keys < 100_000);
    let problems = diana_config::parse(with(", keys: 100000").as_bytes()).unwrap_err().to_string();
    assert!(problems.contains("keys: with `100000` callers"), "{problems}");
    let fits = problems.split("as with `keys: ").nth(1).and_then(|rest| rest.split('`').next());
    let fits: usize = fits.unwrap().parse().unwrap();
    let policy = policy(&with(&format!(", keys: {fits}")));
    let megabytes = |keys| diana_core::sizing::memory(&policy.limits, keys).worker >> 20;
    assert!(policy.limits[0].rules.len() == 40 && megabytes(fits) < 512);
    assert!(megabytes(fits * 10 / 9 + 2) >= 512, "{fits} gives away more than a tenth");
}
