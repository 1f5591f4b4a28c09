use insta::assert_snapshot;

use super::super::problems;

#[test]
fn nothing() {
    assert_snapshot!(problems(""), @"1:1 limits: required, allowed: a list of `{Url, rules}`; `[]` limits nothing");
    assert_snapshot!(problems("# only a comment\n---\n"), @"2:4 limits: required, allowed: a list of `{Url, rules}`; `[]` limits nothing");
    assert_snapshot!(problems("{}"), @"1:1 limits: required, allowed: a list of `{Url, rules}`; `[]` limits nothing");
    assert_snapshot!(problems("limits:"), @"1:7 limits: found nothing, allowed: a list of `{Url, rules}`; `[]` limits nothing");
}

#[test]
fn no_mapping() {
    assert_snapshot!(problems("text"), @"1:1 found `text`, allowed: a mapping such as `{limits: […]}`, or a list of `{Url, rules}`");
    assert_snapshot!(problems("5"), @"1:1 found `5`, allowed: a mapping such as `{limits: […]}`, or a list of `{Url, rules}`");
    assert_snapshot!(problems("[1, {Url: /, rules: []}, [2]]"), @"
    1:2 [0]: found `1`, allowed: a mapping such as `{Url: /, rules: […]}`
    1:26 [2]: found a list, allowed: a mapping such as `{Url: /, rules: […]}`
    ");
    assert_snapshot!(problems("limits: {Url: /, rules: []}"), @"1:9 limits: found a mapping, allowed: a list of `{Url, rules}`; `[]` limits nothing");
}

#[test]
fn several_documents() {
    let text =
        "Url: /\nrules: []\n---\nlimits: []\n---\nUrl: x\nrules: []\n---\n- Url: y\n  rules: []";
    assert_snapshot!(problems(text), @"
    4:1 document[1]: found a mapping, allowed: `{Url, rules}` blocks only, since there are several documents; write settings and `limits` as a single document
    6:6 document[2].Url: `x` must begin with `/`
    9:8 document[3][0].Url: `y` must begin with `/`
    ");
}

#[test]
fn a_block_is_known_by_any_of_its_keys() {
    assert_snapshot!(problems("Url: /"), @"1:1 rules: required, allowed: a list of rules such as `{actor: device, unit: second, rpu: 10}`");
    assert_snapshot!(problems("url: /"), @"1:1 rules: required, allowed: a list of rules such as `{actor: device, unit: second, rpu: 10}`");
    assert_snapshot!(problems("rules: []"), @"1:1 Url: required, allowed: a path such as `/sample`, or a list of paths");
}

#[test]
fn settings_in_a_block() {
    assert_snapshot!(problems("Url: /\nrules: []\nkeys: 10"), @"3:1 keys: unknown key, allowed: Url, url, rules, match, unless, except, response, ignore_case; `keys` belongs at the top, beside `limits`");
    assert_snapshot!(problems("Url: /\nlimits: []"), @"1:1 Url: unknown key, allowed: limits, actors, except, time_zone, response, shadow, namespace, keys, log, accepted, mark, redis, remote, explain, plans, admin; `Url` belongs beside `rules`");
}

#[test]
fn everything_at_once() {
    let text = r#"
limits:
  - Url: /
    rules:
      - {actor: devise, unit: secnd, rpu: -1, algo: TBX, scope: glob, name: A, cots: 1}
      - {actor: all, unit: day, rpu: 5, algo: W, slices: 5, burst: 5, absent: share, ban: {}}
      - rpu: 5
        rpu: 6
  - url: sample
    match: {methods: [get], hosts: ["*"], headers: {x-a: {prefx: b}}}
    except: {addresses: [10.0.0.300]}
    response: {status: 200, headers: {x-a: "\n"}}
    rules: nothing
actors: {all: [], tenant: [{header: a b}]}
time_zone: Mars/Olympus
namespace: a b
keys: none
log: yes
accepted: {all: true}
redis: {}
shadows: true
"#;
    assert_snapshot!(problems(text), @r#"
    5:17 limits[0].rules[0].actor: found `devise`, allowed: all, account, device, address, tenant, another name under `actors`, or a list of names; did you mean `device`?
    5:31 limits[0].rules[0].unit: found `secnd`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`; did you mean `second`?
    5:43 limits[0].rules[0].rpu: found `-1`, allowed: a whole number, 0 … 1000000000
    5:53 limits[0].rules[0].algo: found `TBX`, allowed: TB (token bucket), W (window), SW (sliding window), LB (leaky bucket); did you mean `TB`?
    5:65 limits[0].rules[0].scope: found `glob`, allowed: local, gateway, global; did you mean `global`?
    5:77 limits[0].rules[0].name: found `A`, allowed: 1 … 64 of the characters a-z, 0-9, `_` and `-`
    5:80 limits[0].rules[0].cots: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices; did you mean `cost`?
    6:50 limits[0].rules[1].slices: means nothing to `algo: W`; it is a key of SW
    6:61 limits[0].rules[1].burst: means nothing to `algo: W`; it is a key of TB
    6:79 limits[0].rules[1].absent: means nothing beside `actor: all`, which is never absent
    6:91 limits[0].rules[1].ban.after: required, allowed: a whole number, 1 … 1000000
    6:91 limits[0].rules[1].ban.for: required, allowed: a duration such as `5m`
    6:91 limits[0].rules[1].ban.within: required, allowed: a duration such as `5m`
    7:9 limits[0].rules[2].actor: required, allowed: all, account, device, address, tenant, another name under `actors`, or a list of names
    7:9 limits[0].rules[2].unit: required, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`
    8:9 limits[0].rules[2].rpu: duplicate key
    9:10 limits[1].url: `sample` must begin with `/`
    10:23 limits[1].match.methods[0]: found `get`, allowed: a method in upper case, such as POST; did you mean `GET`?
    10:37 limits[1].match.hosts[0]: found `*`, allowed: a host name without port, or `*.` and a host name
    10:59 limits[1].match.headers.x-a.prefx: unknown key, allowed: exact, prefix, suffix, contains, in, present, not; did you mean `prefix`?
    11:26 limits[1].except.addresses[0]: found `10.0.0.300`, allowed: an address such as 192.0.2.1, or a network such as 10.0.0.0/8
    12:24 limits[1].response.status: found `200`, allowed: a whole number, 400 … 599
    12:44 limits[1].response.headers.x-a: found `\n`, allowed: at most 1024 visible ASCII characters, and spaces only between them
    13:12 limits[1].rules: found `nothing`, allowed: a list of rules such as `{actor: device, unit: second, rpu: 10}`
    14:10 actors.all: `all` has a meaning of its own; choose another name
    14:15 actors.all: found an empty list, allowed: a list of sources such as `[{header: x-tenant}, {client_address: {}}]`
    14:37 actors.tenant[0].header: found `a b`, allowed: a header's name
    15:12 time_zone: found `Mars/Olympus`, allowed: an offset such as "+08:00", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3"; names of time zones are not available in this release: write the rule, which is the last line of the zone's file in `zoneinfo`
    16:12 namespace: found `a b`, allowed: 1 … 64 of the characters A-Z, a-z, 0-9, `_` and `-`
    17:7 keys: found `none`, allowed: a whole number, 1 … 10000000
    18:6 log: found `yes`, allowed: none, refused
    19:12 accepted.all: unknown key, allowed: headers, filter_state
    20:8 redis.cluster: required, allowed: the name of a cluster in Envoy, up to 255 visible ASCII characters
    21:1 shadows: unknown key, allowed: limits, actors, except, time_zone, response, shadow, namespace, keys, log, accepted, mark, redis, remote, explain, plans, admin; did you mean `shadow`?
    "#);
}

#[test]
fn the_form_of_a_struct() {
    let text = r#"{"limits":[{"Url":"/","rules":[{"actor":"devise","rpu":10.5,"unit":"second"}]}],
"keys":0.0}"#;
    assert_snapshot!(problems(text), @"
    1:41 limits[0].rules[0].actor: found `devise`, allowed: all, account, device, address, another name under `actors`, or a list of names; did you mean `device`?
    1:56 limits[0].rules[0].rpu: found `10.5`, allowed: a whole number, 0 … 1000000000
    2:8 keys: found `0`, allowed: a whole number, 1 … 10000000
    ");
}

#[test]
fn words_are_looked_up_until_200_problems_are_found() {
    // Actors are read before the rules above them.
    let hints = |count: usize| {
        let actors: String = (0..count).map(|number| format!("a{number}: 1, ")).collect();
        let rule = "{actor: all, unit: secnd, rpu: 5, bursts: 1}";
        let text = format!("limits: [{{Url: /, rules: [{rule}]}}]\nactors: {{{actors}}}");
        problems(&text).lines().take(2).filter(|line| line.contains("did you mean")).count()
    };
    assert_eq!([hints(100), hints(200)], [2, 0]);
}
