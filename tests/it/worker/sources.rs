//! The log line about a rule with a source that never has a value.

use diana_policy::time::SECOND;
use kit::ending::FakeEnding;
use kit::fake::FakeRequest;
use kit::host::FakeHost;

use super::Thread;

const RULES: &str = "
limits:
- {Url: /, rules: [{name: a, actor: account, unit: day, rpu: 9}]}
- {Url: /net, rules: [{name: n, actor: address, unit: day, rpu: 9, scope: local}]}
- {Url: /both, rules: [{name: b, actor: [device, account], unit: day, rpu: 9, absent: share}]}
- {Url: /all, rules: [{name: all, actor: all, unit: day, rpu: 9}]}
";

/// Two workers of a gateway.
fn workers(rules: &str) -> [Thread; 2] {
    let mut first = Thread::of(FakeHost::default());
    let second = FakeHost { data: first.host.data.clone(), ..FakeHost::default() };
    let mut second = Thread::of(second);
    assert!(first.configure(1, rules) && second.configure(1, rules));
    [first, second]
}

/// Sends this many requests, alternately to both workers, and returns the warnings.
fn warnings(
    workers: &mut [Thread; 2],
    times: u32,
    request: impl Fn() -> FakeRequest,
) -> Vec<String> {
    for number in 0..times {
        let worker = &mut workers[number as usize % 2];
        worker.ask(1, 10 + number, request());
        worker.streams.clear();
        if number % 100 > 97 {
            workers.iter_mut().for_each(|worker| worker.pass(SECOND));
        }
    }
    workers.iter_mut().for_each(|worker| worker.pass(2 * SECOND));
    let mut lines = Vec::new();
    for worker in workers {
        let log = worker.host.log.take().into_iter().map(|(_, line)| line);
        lines.extend(log.filter(|line| line.starts_with("rule ")));
    }
    lines
}

#[test]
fn rule_without_a_source_is_logged_once() {
    let get = |path: &'static str| move || FakeRequest::get(path);
    for (path, name, source) in [
        ("/", "a", "account (header \"x-account-id\")"),
        ("/net", "n", "address (client_address)"),
        (
            "/both",
            "b",
            "device (header \"x-device-id\" or client_address) and account (header \"x-account-id\")",
        ),
    ] {
        let mut workers = workers(RULES);
        let of_it = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().filter(|line| line.starts_with(&format!("rule `{name}`"))).collect()
        };
        assert_eq!(of_it(warnings(&mut workers, 998, get(path))), [""; 0], "{path}");
        let wanted =
            format!("rule `{name}`: 1000 requests, and none of them had its caller: {source}");
        assert_eq!(of_it(warnings(&mut workers, 2, get(path))), [wanted]);
        assert_eq!(of_it(warnings(&mut workers, 2000, get(path))), [""; 0], "{path}");
    }
}

#[test]
fn rule_with_a_source_is_not_logged() {
    // Another worker has seen the only request with a value.
    let mut workers = workers(RULES);
    workers[0].request(1, 1, "ann");
    let lines = warnings(&mut workers, 3000, || FakeRequest::get("/"));
    assert_eq!(lines, [""; 0]);
    assert_eq!(warnings(&mut workers, 3000, || FakeRequest::get("/all")), [""; 0]);
}

/// In both orders of the workers' reports.
#[test]
fn source_that_one_worker_has_seen_is_not_logged() {
    for [seen, other] in [[0, 1], [1, 0]] {
        let mut workers = workers(RULES);
        (0..1000).for_each(|number| _ = workers[other].ask(1, 10 + number, FakeRequest::get("/")));
        workers[seen].request(1, 1, "ann");
        for _ in 0..200 {
            workers.iter_mut().for_each(|worker| worker.pass(SECOND / 100));
        }
        assert_eq!(warnings(&mut workers, 2, || FakeRequest::get("/")), [""; 0], "{seen}");
    }
}

/// A mistake that replaces another one is logged, too.
#[test]
fn changed_source_is_watched_anew() {
    let mut workers = workers(RULES);
    assert_eq!(warnings(&mut workers, 1000, || FakeRequest::get("/")).len(), 1);
    let changed = format!("{RULES}actors: {{account: [{{header: x-acc}}]}}");
    workers.iter_mut().for_each(|worker| assert!(worker.configure(1, &changed)));
    let lines = warnings(&mut workers, 1000, || FakeRequest::get("/"));
    let wanted =
        "rule `a`: 1000 requests, and none of them had its caller: account (header \"x-acc\")";
    assert_eq!(lines, [wanted]);
}

/// Ends requests of rule `r` on one worker by these responses. Returns its warnings.
fn usage_warnings(responses: impl Iterator<Item = FakeEnding>) -> Vec<String> {
    warnings_of("{header: x-cost}", responses)
}

/// The same by this source.
fn warnings_of(source: &str, responses: impl Iterator<Item = FakeEnding>) -> Vec<String> {
    let rules = format!(
        "
limits:
- Url: /
  rules:
  - {{name: r, actor: all, unit: day, rpu: 100000, algo: W, cost: {{response: {source}, max: 9}}}}
"
    );
    let mut worker = Thread::with(&rules);
    for (number, ending) in (10..).zip(responses) {
        assert!(worker.ask(1, number, FakeRequest::get("/")));
        worker.host.begin(1);
        let mut stream = worker.streams.remove(&number).unwrap();
        _ = stream.response(&ending, &worker.worker, &worker.host);
        stream.end(&ending, &worker.worker, &worker.host);
    }
    worker.pass(3 * SECOND);
    let lines = worker.host.log.take().into_iter().map(|(_, line)| line);
    lines.filter(|line| line.starts_with("rule ")).collect()
}

#[test]
fn usage_that_ten_responses_lack_is_logged_once() {
    let without = |status, count| (0..count).map(move |_| FakeEnding::answered(status));
    let with = |value| std::iter::once(FakeEnding::answered(200).header("x-cost", value));
    let line = "rule `r`: 10 requests, and none of them had its usage: header \"x-cost\"";
    assert_eq!(usage_warnings(without(200, 9)), [""; 0]);
    assert_eq!(usage_warnings(without(200, 10)), [line]);
    assert_eq!(usage_warnings(without(204, 2500)), [line]);
    assert_eq!(usage_warnings(without(200, 9).chain(with("many"))), [line]);
    // A response with the usage ends the watch, and errors need none.
    assert_eq!(usage_warnings(with("3").chain(without(200, 2500))), [""; 0]);
    assert_eq!(usage_warnings(without(200, 9).chain(with("3")).chain(without(200, 99))), [""; 0]);
    assert_eq!(usage_warnings(without(503, 2500).chain(without(200, 9))), [""; 0]);
}

#[test]
fn sum_that_ten_responses_lack_a_number_of_is_logged_once() {
    let answered = |status: u16, fields: &'static [&'static str], count: usize| {
        let with = move |ending: FakeEnding, field: &&'static str| ending.header(field, "2");
        (0..count).map(move |_| fields.iter().fold(FakeEnding::answered(status), with))
    };
    let [whole, part] = [&["x-in", "x-out"][..], &["x-in"][..]];
    let warnings = |responses: Vec<FakeEnding>| {
        warnings_of("{sum: [{header: x-in}, {header: x-out, times: 4}]}", responses.into_iter())
    };
    let line = |what, between| {
        format!(
            "rule `r`: 10 requests, and none of them had its {what}: header \"x-in\" {between} header \"x-out\""
        )
    };
    assert_eq!(warnings(answered(200, part, 9).collect()), [""; 0]);
    assert_eq!(warnings(answered(200, part, 2500).collect()), [line("whole usage", "and")]);
    assert_eq!(warnings(answered(200, &["x-out"], 10).collect()), [line("whole usage", "and")]);
    assert_eq!(warnings(answered(200, &[], 10).collect()), [line("usage", "or")]);
    let late = answered(200, part, 9).chain(answered(200, whole, 1)).chain(answered(200, part, 99));
    assert_eq!(warnings(late.collect()), [""; 0]);
    assert_eq!(warnings(answered(500, part, 99).collect()), [""; 0]);
}

/// Envoy keeps numbers as 64-bit floats, and wasm gets their bytes.
#[test]
fn numbers_that_envoy_has_rounded_are_logged_once() {
    const CLAIM: [&str; 5] =
        ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "payload", "id"];
    let rules = "
limits:
- {Url: /, rules: [{name: a, actor: user, unit: day, rpu: 9}, {name: b, actor: [user, address], unit: day, rpu: 9}]}
- {Url: /, rules: [{name: c, actor: address, unit: day, rpu: 9}]}
actors: {user: [{jwt_claim: id, payload: payload}]}
";
    let of = |value: &[u8]| FakeRequest::get("/").from("10.0.0.1:80").property(&CLAIM, value);
    let lines = |values: &[&[u8]]| {
        let mut workers = workers(rules);
        values.iter().for_each(|value| _ = workers[1].ask(1, 9, of(value)));
        let lines = warnings(&mut workers, 10, || of(values[0]));
        let starts = lines.iter().filter(|line| line.contains("which Envoy has rounded"));
        starts.map(|line| line[..8].to_string()).collect::<Vec<_>>()
    };
    let numbers: [f64; 5] =
        [9007199254740992.0, -9007199254740992.0, 1e18, 1.5e300, 9007199254740994.0];
    for number in numbers {
        assert_eq!(lines(&[&number.to_le_bytes()]), ["rule `a`", "rule `b`"], "{number}");
        assert_eq!(lines(&[b"ann", &number.to_le_bytes()]), ["rule `a`", "rule `b`"], "{number}");
    }
    let numbers: [f64; 6] = [9007199254740991.0, -5.0, 0.5, 1.0, f64::NAN, f64::INFINITY];
    for number in numbers {
        assert_eq!(lines(&[&number.to_le_bytes()]), [""; 0], "{number}");
    }
    for text in ["gold-cat", "9007199254740993", "\u{e9}\u{e9}\u{e9}\u{e9}"] {
        assert_eq!(lines(&[text.as_bytes()]), [""; 0], "{text}");
    }
}
