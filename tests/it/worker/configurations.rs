//! Configurations that are added and removed.

use super::{FakeHost, MILLISECOND, Thread};
use crate::support::allocator;
use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use diana_worker::host::Level;
use kit::fake::FakeRequest;

fn rule(name: &str, more: &str) -> String {
    format!("{{name: {name}, actor: account, unit: minute, algo: W, {more}}}")
}

fn rules(rules: &[String]) -> String {
    format!("limits: [{{Url: /, rules: [{}]}}]", rules.join(", "))
}

fn one(more: &str) -> String {
    rules(&[rule("r", more)])
}

#[test]
fn invalid_configuration_is_logged_and_not_applied() {
    let mut thread = Thread::new();
    assert!(!thread.configure(1, "limits: 7"));
    assert_eq!(thread.host.count_of("diana.ns.config.rejected"), 1);
    assert!(thread.roots[&1].instance().is_none());
    let log = thread.host.log.take();
    assert!(log.iter().all(|(level, _)| *level == Level::Error) && log.len() > 1, "{log:?}");
    assert_eq!(log[0].1, "configuration rejected:");
    assert!(thread.configure(1, &one("rpu: 1, scope: local")));
    assert!(thread.request(1, 10, "ann") && !thread.request(1, 11, "ann"));
    assert!(!thread.configure(1, "limits: 7"));
    assert!(!thread.request(1, 12, "ann"));
    assert_eq!(thread.host.refused(), [11, 12]);
}

/// All workers receive a configuration within some seconds, and one of them logs it.
/// The page of the log promises this level, which control planes hide by default.
#[test]
fn configuration_news_have_level_info() {
    let mut thread = Thread::new();
    assert!(thread.configure(1, &one("rpu: 1, scope: local")));
    thread.host.set(thread.host.now.get().mono + 10 * SECOND);
    let rules = rules(&["a", "b"].map(|name| rule(name, "rpu: 1, scope: local")));
    assert!(thread.configure(1, &rules));
    let log = thread.host.log.borrow();
    for news in ["configuration accepted", "these rules start with no usage"] {
        let found = log.iter().find(|(_, line)| line.starts_with(news));
        assert_eq!(found.map(|(level, _)| *level), Some(Level::Info), "{log:?}");
    }
}

#[test]
fn configuration_is_logged_once() {
    let mut first = Thread::new();
    let host = FakeHost { data: first.host.data.clone(), ..FakeHost::default() };
    let mut second = Thread::of(host);
    let text = one("rpu: 1, scope: local");
    let configure = |thread: &mut Thread, text: &str, later: u64| {
        let before = thread.host.count_of("diana.ns.config.accepted");
        let now = thread.host.now.get();
        thread.host.set(now.mono + later);
        assert!(thread.configure(1, text), "{:?}", thread.host.lines());
        let anew = "these rules start with no usage: ";
        let lines = thread.host.lines();
        let anew = lines.iter().find_map(|line| line.strip_prefix(anew)).map(str::to_owned);
        (thread.host.count_of("diana.ns.config.accepted") - before, anew)
    };
    assert_eq!(configure(&mut first, &text, 0), (1, None), "there was none before");
    assert_eq!(configure(&mut second, &text, 10 * SECOND), (0, None));
    assert_eq!(configure(&mut second, &text, 1), (1, None), "it comes once more");
    // Another configuration with some new rules.
    let limit =
        |name: &str| format!("{{Url: /{name}, rules: [{}]}}", rule(name, "rpu: 1, scope: local"));
    let limits = |names: &[String]| {
        let limits: Vec<String> = names.iter().map(|name| limit(name)).collect();
        format!("limits: [{}]", limits.join(", "))
    };
    let names = |letter: char, count: usize| {
        (0..count).map(|n| format!("{letter}{n}")).collect::<Vec<String>>()
    };
    let with = |count: usize| limits(&names('n', count));
    assert_eq!(configure(&mut second, &with(20), 0), (1, Some(names('n', 20).join(", "))));
    assert_eq!(configure(&mut first, &with(20), 10 * SECOND), (0, None));
    assert_eq!(configure(&mut first, &with(21), 0), (1, Some("n20".into())));
    let mut third = Thread::of(FakeHost { data: second.host.data.clone(), ..FakeHost::default() });
    let logged = configure(&mut third, &limits(&names('x', 22)), 20 * SECOND);
    assert_eq!(logged, (1, Some(format!("{} and 2 more", names('x', 20).join(", ")))));
    // Many rules are recorded.
    configure(&mut third, &limits(&names('y', 600)), 20 * SECOND);
    let logged = configure(&mut third, &limits(&names('y', 601)), 20 * SECOND);
    assert_eq!(logged, (1, Some("y600".into())));
    // Current rules do not displace former ones.
    let mut beside = |name: String| {
        let names = [names('y', 600), vec![name]].concat();
        configure(&mut third, &limits(&names), 20 * SECOND)
    };
    (0..10).for_each(|n| assert_eq!(beside(format!("z{n}")), (1, Some(format!("z{n}")))));
    assert_eq!(beside("x0".into()), (1, None));
}

/// Lists of values replace each other: what is no longer there is named, too.
#[test]
fn rules_that_end_are_logged_by_name() {
    let mut first = Thread::new();
    let host = FakeHost { data: first.host.data.clone(), ..FakeHost::default() };
    let mut second = Thread::of(host);
    let of = |names: &[&str]| rules(&names.iter().map(|it| rule(it, "rpu: 1")).collect::<Vec<_>>());
    let ended = |thread: &mut Thread, names: &[&str]| {
        thread.host.set(thread.host.now.get().mono + 20 * SECOND);
        thread.host.log.take();
        assert!(thread.configure(1, &of(names)));
        let log = thread.host.log.take();
        let ended = |(level, line): &(Level, String)| {
            let names = line.strip_prefix("these rules have ended: ")?;
            assert_eq!(*level, Level::Info);
            Some(names.to_owned())
        };
        log.iter().filter_map(ended).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(ended(&mut first, &["deny", "login", "a"]), "");
    assert_eq!(ended(&mut second, &["a", "b"]), "deny, login");
    assert_eq!(ended(&mut second, &["b", "a"]), "");
    assert_eq!(ended(&mut first, &["b", "a", "c"]), "");
    assert_eq!(ended(&mut first, &[]), "b, a, c");
    let many: Vec<String> = (0..22).map(|n| format!("n{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(ended(&mut first, &many), "");
    assert_eq!(ended(&mut first, &["n21"]), format!("{} and 1 more", many[..20].join(", ")));
    // Another filter with the namespace.
    assert_eq!(ended(&mut second, &["x", "y", "z"]), "");
    assert_eq!(ended(&mut first, &["n21", "a", "b"]), "");
    assert_eq!(ended(&mut second, &["x", "z"]), "y");
    assert_eq!(ended(&mut first, &["a", "b", "z"]), "n21");
    // A rule of both filters has not ended.
    assert_eq!(ended(&mut first, &["a", "b"]), "");
    assert_eq!(ended(&mut second, &["x"]), "z");
    assert_eq!(ended(&mut second, &[]), "x");
}

/// By one worker of a process, at its first configuration, and only if it counts usage there.
#[test]
fn first_configuration_logs_that_gateway_usage_starts() {
    let starts = |thread: &Thread| {
        let lines = thread.host.lines();
        lines.iter().filter(|line| line.contains("counted per gateway starts from zero")).count()
    };
    let redis = "redis: {cluster: c}";
    let global = one("rpu: 1, scope: global");
    for (text, logged) in [
        (one("rpu: 1, scope: gateway"), 1),
        (one("rpu: 1, scope: local"), 0),
        (global.clone(), 1),
        (format!("{global}\n{redis}"), 0),
    ] {
        let mut first = Thread::new();
        let host = FakeHost { data: first.host.data.clone(), ..FakeHost::default() };
        let mut second = Thread::of(host);
        assert!(first.configure(1, &text) && second.configure(1, &text));
        assert_eq!([starts(&first), starts(&second)], [logged, 0], "{text}");
        first.host.log.take();
        first.host.set(first.host.now.get().mono + 20 * SECOND);
        assert!(first.configure(1, &one("rpu: 2, scope: gateway")));
        assert_eq!(starts(&first), 0, "an update");
    }
}

#[test]
fn default_namespace_is_the_root_name_without_odd_characters() {
    for (name, namespace) in
        [(&b"a-Z09"[..], "a-Z09"), (b"a.b/c d", "a_b_c_d"), (b"", "diana"), (b"\xff", "_")]
    {
        let mut thread = Thread::new();
        thread.host.roots.borrow_mut().entry(1).or_default();
        thread.roots.entry(1).or_default();
        let text = one("rpu: 1, scope: local");
        assert!(
            thread
                .call(1, |it, worker, host| { it.configure(text.as_bytes(), name, worker, host) })
        );
        assert_eq!(thread.host.count_of(&format!("diana.{namespace}.config.accepted")), 1);
    }
}

/// Counts are reported within a while, and there are no further calls.
#[test]
fn metrics_are_reported_before_the_timer_stops() {
    let mut thread = Thread::with(&one("rpu: 1, scope: local"));
    assert_eq!(thread.host.period(1), 0);
    assert!(thread.request(1, 10, "ann") && !thread.request(1, 11, "ann"));
    assert!(thread.host.period(1) > 0);
    let (allowed, denied) = ("diana.ns.rule.r.allowed", "diana.ns.rule.r.denied");
    assert_eq!((thread.host.count_of(allowed), thread.host.count_of(denied)), (0, 0));
    thread.pass(2 * SECOND);
    assert_eq!(thread.host.period(1), 0, "{:?}", thread.host.counts);
    assert_eq!(thread.host.count_of(allowed), 1);
    assert_eq!(thread.host.count_of("diana.ns.rule.r.keys"), 1, "{:?}", thread.host.counts);
    // A root that has ended counts no callers.
    thread.end(1);
    assert_eq!(thread.host.count_of("diana.ns.rule.r.keys"), 0);
}

/// Usage, slots in flight and bans are found by the fingerprint in every store.
#[test]
fn rules_without_names_keep_their_usage_in_another_order() {
    let rules = |scope: &str| {
        [
            format!("{{actor: account, unit: hour, algo: W, scope: {scope}, rpu: 2}}"),
            format!(
                "{{actor: account, unit: hour, algo: W, scope: {scope}, rpu: 100, cost: {{header: x-cost, max: 90}}, \
                 ban: {{after: 2, within: 1h, for: 1h}}}}"
            ),
            format!("{{actor: account, scope: {scope}, in_flight: 3}}"),
        ]
    };
    let document = |matches: &str, rules: &[&String]| {
        let rules: Vec<&str> = rules.iter().map(|rule| rule.as_str()).collect();
        format!("limits: [{{Url: /, match: {{{matches}}}, rules: [{}]}}]", rules.join(", "))
    };
    for scope in ["local", "gateway"] {
        let [few, costly, open] = rules(scope);
        let further = few.replace("rpu: 2", "rpu: 9, count: {failed: true}");
        let mut thread = Thread::with(&document(
            "methods: [GET, POST], headers: {x-a: {not: b}, x-c: {not: d}}",
            &[&few, &costly, &open],
        ));
        assert!(thread.request(1, 10, "ann") && thread.request(1, 11, "ann"));
        let cost =
            |cost: &str| FakeRequest::get("/").header("x-account-id", "bob").header("x-cost", cost);
        assert!(thread.ask(1, 12, cost("90")));
        assert!(!thread.ask(1, 13, cost("50")) && !thread.ask(1, 14, cost("50")), "a ban begins");
        let changed = document(
            "headers: {x-c: {not: d}, x-a: {not: b}}, methods: [POST, GET]",
            &[&further, &open, &costly, &few],
        );
        assert!(thread.configure(1, &changed));
        assert!(!thread.request(1, 20, "ann"), "{scope}: two in this hour");
        assert!(!thread.ask(1, 21, cost("1")), "{scope}: a ban");
        assert!(thread.request(1, 22, "cid"), "{scope}");
    }
}

/// What resets, as in docs/guides/upgrading.md.
#[test]
fn change_of_identity_or_namespace_resets_usage_and_no_other_change() {
    const BEFORE: &str = "namespace: shop
limits:
- Url: /
  rules: [{name: r, actor: account, unit: hour, algo: SW, slices: 10, rpu: 2, scope: SCOPE}]";
    for (part, changed, resets) in [
        ("Url: /", "Url: /\n  match: {methods: [GET]}", false),
        ("rpu: 2", "rpu: 2, shadow: false, cost: 1", false),
        ("name: r", "name: s", true),
        ("unit: hour", "unit: day", true),
        ("algo: SW, slices: 10", "algo: W", true),
        ("slices: 10", "slices: 12", true),
        ("limits:", "time_zone: \"+08:00\"\nlimits:", true),
        ("namespace: shop", "namespace: other", true),
    ] {
        for scope in ["local", "gateway"] {
            let before = BEFORE.replace("SCOPE", scope);
            let after = before.replace(part, changed);
            assert_ne!(before, after);
            let mut thread = Thread::with(&before);
            assert!(thread.request(1, 10, "ann") && thread.request(1, 11, "ann"));
            assert!(!thread.request(1, 12, "ann"));
            assert!(thread.configure(1, &after), "{after}");
            assert_eq!(thread.request(1, 13, "ann"), resets, "{scope}: {changed}");
        }
    }
}

/// Exact to the byte, which the pages of a VM do not show.
#[test]
fn repeated_changes_take_no_more_memory() {
    let mut thread = Thread::new();
    let mut taken = Vec::with_capacity(300);
    for number in 100..400 {
        let rules: Vec<String> =
            (0..50).map(|n| rule(&format!("r{n}"), "rpu: 1, scope: local")).collect();
        let text = format!("limits: [{{Url: /{number}, rules: [{}]}}]", rules.join(", "));
        assert!(thread.configure(1, &text));
        for caller in 0..20 {
            let request = FakeRequest::get(&format!("/{number}"));
            thread.ask(1, 10 + caller, request.header("x-account-id", caller.to_string()));
        }
        thread.streams.clear();
        thread.pass(10 * SECOND);
        thread.host.log.take();
        thread.host.refusals.take();
        thread.host.replies.take();
        thread.host.streams.take();
        taken.push(allocator::bytes());
    }
    // By then the record of the fingerprints of rules has its maximum length.
    let most = |of: &[i64]| of.iter().copied().max();
    assert_eq!(most(&taken[200..]), most(&taken[100..200]), "{taken:?}");
}

fn bytes(thread: &Thread) -> usize {
    let of_rules = |name: &String| name.starts_with("diana/2/");
    let names = thread.host.data.keys().into_iter().filter(of_rules);
    names.map(|name| thread.host.data.get(&name).unwrap().0.len()).sum()
}

/// If no other configuration of this worker has the rule.
#[test]
fn shared_data_of_a_removed_rule_is_cleared() {
    let gateway = one("rpu: 1, scope: gateway");
    for other in [false, true] {
        let mut thread = Thread::with(&gateway);
        (10..60).for_each(|stream| _ = thread.request(1, stream, &stream.to_string()));
        if other {
            assert!(thread.configure(2, &gateway));
        }
        let full = bytes(&thread);
        thread.streams.clear();
        assert!(thread.configure(1, &one("rpu: 1, scope: local")));
        thread.pass(61 * SECOND);
        assert_eq!(bytes(&thread), full);
        thread.pass(10 * SECOND);
        assert_eq!(bytes(&thread) < full, !other, "{full} bytes");
    }
}

/// A listener drains for many minutes. Its leases are returned earlier, since other requests need
/// them.
#[test]
fn quiet_replaced_configuration_returns_its_leases() {
    let mut thread = Thread::with(&one("rpu: 1, scope: local"));
    assert!(thread.request(1, 10, "ann"));
    assert!(thread.configure(2, &one("rpu: 1, scope: local")));
    assert!(!thread.request(2, 20, "ann"), "the same rule goes on counting");
    let keys = |thread: &Thread| thread.host.count_of("diana.ns.rule.r.keys");
    thread.pass(SECOND);
    assert_eq!(keys(&thread), 1);
    // It still has a stream, and a request makes it active again.
    thread.pass(4 * SECOND);
    let period = thread.host.next();
    assert_eq!(period, None, "everything has been reported");
    assert!(!thread.request(1, 11, "ann"));
    assert!(thread.host.next().is_some());
    thread.pass(10 * SECOND);
    assert_eq!(thread.host.next(), None);
    thread.pass(MILLISECOND);
}
