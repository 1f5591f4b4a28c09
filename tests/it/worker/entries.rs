//! The log line about entries that apply to no request.

use diana_policy::time::SECOND;
use kit::fake::FakeRequest;
use kit::host::FakeHost;

use super::Thread;

const RULES: &str = "
limits:
- {Url: /, rules: [{name: all, actor: all, unit: day, rpu: 9}]}
- {Url: /v1/login, rules: [{name: login, actor: address, unit: day, rpu: 9}, {name: login-all, actor: all, unit: day, rpu: 9}]}
- {Url: /, match: {methods: [POST]}, rules: [{name: posts, actor: all, unit: day, rpu: 9}]}
- {Url: /, match: {hosts: [api.example]}, rules: [{name: api, actor: all, unit: day, rpu: 9}]}
- {Url: /none, rules: []}
except: {paths: [/healthz]}
";

/// Two workers of a gateway.
fn workers(rules: &str) -> [Thread; 2] {
    let first = Thread::of(FakeHost::default());
    let second = FakeHost { data: first.host.data.clone(), ..FakeHost::default() };
    let mut workers = [first, Thread::of(second)];
    workers.iter_mut().for_each(|worker| assert!(worker.configure(1, rules)));
    workers
}

/// Sends this many requests to a worker, and returns the lines about entries.
fn lines(worker: &mut Thread, times: u32, request: &FakeRequest) -> Vec<String> {
    for number in 0..times {
        worker.ask(1, 10 + number, request.clone());
        worker.streams.clear();
        if number % 100 == 99 {
            worker.pass(SECOND);
        }
    }
    worker.pass(2 * SECOND);
    let lines = worker.host.lines();
    lines.into_iter().filter(|line| line.contains("none of them met")).collect()
}

/// The gauge, of the worker that set it last.
fn unused(worker: &Thread) -> i64 {
    worker.host.count_of("diana.ns.entries_unused")
}

fn names(line: &str) -> &str {
    let (_, names) = line.split_once("the entries of these rules: ").unwrap();
    names.split_once(';').unwrap().0
}

#[test]
fn entries_without_a_request_are_logged_once_in_a_gateway() {
    let [mut first, mut second] = workers(RULES);
    let post = FakeRequest { method: Some("POST".into()), ..FakeRequest::get("/") };
    assert_eq!(lines(&mut second, 999, &FakeRequest::get("/a")), [""; 0]);
    assert_eq!(lines(&mut first, 1, &post), [""; 0]);
    // Of exempt requests, no entry shows whether it applies.
    assert_eq!(lines(&mut first, 5000, &FakeRequest::get("/healthz")), [""; 0]);
    assert_eq!(lines(&mut first, 999, &FakeRequest::get("/a")), [""; 0]);
    let found = lines(&mut second, 1, &FakeRequest::get("/a"));
    assert!(found.len() == 1 && found[0].starts_with("2000 requests, "), "{found:?}");
    assert_eq!((names(&found[0]), unused(&second)), ("login, api", 2));
    assert_eq!(lines(&mut first, 3000, &FakeRequest::get("/a")), [""; 0]);
    // The gauge follows.
    assert_eq!(lines(&mut first, 1, &FakeRequest::get("/v1/login")), [""; 0]);
    assert_eq!(unused(&first), 1);
    // Another document with the same entries changes nothing.
    let changed = RULES.replace("rpu: 9", "rpu: 8");
    for worker in [&mut first, &mut second] {
        assert!(worker.configure(1, &changed));
        assert_eq!(lines(worker, 3000, &FakeRequest::get("/a")), [""; 0]);
    }
    // A document with other entries is watched from the start.
    let changed = RULES.replace("/v1/login", "/v2/login");
    assert!(first.configure(1, &changed) && second.configure(1, &changed));
    assert_eq!(lines(&mut first, 1, &FakeRequest::get("/a")), [""; 0]);
    assert_eq!(unused(&first), 0);
    let found = lines(&mut first, 1999, &FakeRequest::get("/a"));
    assert_eq!(found.iter().map(|line| names(line)).collect::<Vec<_>>(), ["login, posts, api"]);
}

/// A later listener of the same process, such as that of operators.
#[test]
fn listener_without_requests_hides_no_entry() {
    let other = "limits: [{Url: /, rules: [{name: other, actor: all, unit: day, rpu: 9}]}]";
    for rules in [RULES, other] {
        let [mut first, _] = workers(RULES);
        assert!(first.configure(2, rules));
        let found = lines(&mut first, 2000, &FakeRequest::get("/a"));
        let names: Vec<_> = found.iter().map(|line| names(line)).collect();
        assert_eq!((names.as_slice(), unused(&first)), (&["login, posts, api"][..], 3), "{rules}");
    }
}

#[test]
fn entries_that_all_apply_are_not_logged() {
    for rules in [
        "limits: [{Url: /, rules: [{name: a, actor: account, unit: day, rpu: 9}]}]",
        "limits: [{Url: /, except: {paths: [/a]}, rules: [{name: a, actor: all, unit: day, rpu: 9}]}]",
        "limits: [{Url: /, rules: [{name: a, actor: all, unit: day, rpu: 0, shadow: true}]}]",
        "limits: [{Url: /b, rules: [{name: a, actor: all, unit: day, rpu: 9}]}]\ndisabled: true",
        "limits: []",
    ] {
        let [mut first, _] = workers(rules);
        assert_eq!(lines(&mut first, 2500, &FakeRequest::get("/a")), [""; 0], "{rules}");
        assert_eq!(unused(&first), 0, "{rules}");
    }
}

#[test]
fn many_entries_are_named_in_part() {
    let entry =
        |n| format!("{{Url: /{n}, rules: [{{name: n{n}, actor: all, unit: day, rpu: 9}}]}}");
    let entries: Vec<String> = (0..130).map(entry).collect();
    let [mut first, _] = workers(&format!("limits: [{}]", entries.join(", ")));
    assert_eq!(lines(&mut first, 1, &FakeRequest::get("/3")), [""; 0]);
    let found = lines(&mut first, 2000, &FakeRequest::get("/129"));
    assert_eq!(names(&found[0]), "n0, n1, n2, n4, n5, n6, n7, n8, n9, n10 and 118 more");
    assert_eq!(unused(&first), 128);
}
