//! Usage survives a configuration change as long as the rule is the same.

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::fake::{FakeClock, FakeMetrics, FakeRequest, FakeSharedData};
use std::rc::Rc;

use kit::store::gateway::START;

/// A worker whose configuration changes.
#[derive(Default)]
struct Worker {
    data: Rc<FakeSharedData>,
    tables: Tables,
    clock: FakeClock,
}

impl Worker {
    fn new() -> Worker {
        let worker = Worker::default();
        worker.clock.0.set(START);
        worker
    }

    fn configure(&mut self, text: &str) -> Limiter {
        let policy = crate::config::policy(text);
        let stores = Stores::new("test".into(), self.data.clone(), &mut self.tables);
        Limiter::new(policy, Seed { k0: 7, k1: 9 }, stores, None).unwrap()
    }

    fn admits(&self, limiter: &mut Limiter) -> bool {
        let request = FakeRequest::get("/a/b").header("x-account-id", "ann").header("x-app", "m");
        matches!(limiter.decide(&request, 0, &self.clock), Verdict::Admit(..))
    }

    /// The number of admitted requests of `of`.
    fn admitted(&self, limiter: &mut Limiter, of: usize) -> usize {
        (0..of).filter(|_| self.admits(limiter)).count()
    }

    fn retire(&self, mut limiter: Limiter) {
        limiter.retire("test", self.clock.0.get(), &FakeMetrics::default());
    }
}

/// Uses seven permits under one configuration. Returns the remaining ones under the next one.
fn left_after(before: &str, after: &str) -> usize {
    let mut worker = Worker::new();
    let mut old = worker.configure(before);
    assert_eq!(worker.admitted(&mut old, 7), 7, "{before}");
    let mut new = worker.configure(after);
    worker.retire(old);
    worker.admitted(&mut new, 50)
}

const BEFORE: &str = "limits: [{Url: /a, match: {headers: {x-app: m}}, rules: [{actor: account, unit: day, rpu: 10, algo: SW, scope: SCOPE}]}]";

/// `BEFORE` with a part replaced.
fn changed(part: &str, to: &str) -> String {
    assert!(BEFORE.contains(part), "{part}");
    BEFORE.replace(part, to)
}

#[test]
fn other_changes_keep_the_usage_of_a_rule() {
    for (part, to, left) in [
        ("rpu: 10", "rpu: 12", 5),
        ("rpu: 10", "rpu: 5", 0),
        ("rpu: 10", "rpu: 10, cost: 2", 1),
        (
            "rpu: 10",
            "rpu: 10, expose: false, absent: share, enforce: 99, response: {status: 429}",
            3,
        ),
        ("rules: [", "rules: [{actor: account, unit: hour, rpu: 40, scope: SCOPE}, ", 3),
        (
            "limits: [",
            "limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 40, algo: SW, scope: SCOPE}]}, ",
            3,
        ),
        ("limits", "keys: 5\nlimits", 3),
    ] {
        for scope in ["local", "gateway"] {
            let before = BEFORE.replace("SCOPE", scope);
            let after = changed(part, to).replace("SCOPE", scope);
            assert_eq!(left_after(&before, &after), left, "{after}");
        }
    }
}

#[test]
fn changed_identity_of_a_rule_resets_its_usage() {
    for (part, to) in [
        ("Url: /a", "Url: /"),
        ("match: {headers: {x-app: m}}, ", ""),
        ("headers: {x-app: m}", "headers: {x-app: {prefix: m}}"),
        ("actor: account", "actor: all"),
        ("unit: day", "unit: hour"),
        ("algo: SW", "algo: TB"),
        ("algo: SW", "algo: W"),
        ("rpu: 10", "rpu: 10, slices: 12"),
        ("rpu: 10", "rpu: 10, name: x"),
        ("limits", "time_zone: '+01:00'\nlimits"),
    ] {
        for scope in ["local", "gateway"] {
            let before = BEFORE.replace("SCOPE", scope);
            let after = changed(part, to).replace("SCOPE", scope);
            assert_eq!(left_after(&before, &after), 10, "{after}");
        }
    }
    let [local, gateway] = ["local", "gateway"].map(|scope| BEFORE.replace("SCOPE", scope));
    assert_eq!(left_after(&local, &gateway), 10);
    assert_eq!(left_after(&gateway, &local), 10);
}

#[test]
fn name_identifies_a_rule() {
    for scope in ["local", "gateway"] {
        let named = BEFORE.replace("rpu: 10", "rpu: 10, name: x").replace("SCOPE", scope);
        let moved =
            named.replace("Url: /a", "Url: /").replace("headers: {x-app: m}", "methods: [GET]");
        assert_eq!(left_after(&named, &moved), 3);
        assert_eq!(left_after(&named, &named.replace("name: x", "name: y")), 10);
    }
}

#[test]
fn equal_rules_are_distinguished_by_their_order() {
    for scope in ["local", "gateway"] {
        let two = |first: u64, second: u64| {
            let rule =
                |rpu| format!("{{actor: all, unit: day, rpu: {rpu}, algo: W, scope: {scope}}}");
            format!("{{Url: /, rules: [{}, {}]}}", rule(first), rule(second))
        };
        assert_eq!(left_after(&two(7, 10), &two(20, 10)), 3);
        assert_eq!(left_after(&two(7, 10), &two(9, 20)), 2);
    }
}

/// Returns true if a caller that was banned under one configuration is banned under the next one.
fn is_still_banned(scope: &str, part: &str, to: &str) -> bool {
    const RULE: &str = "keys: 100
limits: [{Url: /a, rules: [{actor: account, unit: day, rpu: 1, scope: SCOPE, ban: {after: 2, within: 1m, for: 10m}}]}]";
    let before = RULE.replace("SCOPE", scope);
    assert!(before.contains(part), "{part}");
    let mut worker = Worker::new();
    let mut old = worker.configure(&before);
    assert_eq!(worker.admitted(&mut old, 4), 1);
    let mut new = worker.configure(&before.replace(part, to));
    worker.retire(old);
    let request = FakeRequest::get("/a/b").header("x-account-id", "ann");
    let verdict = new.decide(&request, 0, &worker.clock);
    matches!(verdict, Verdict::Refuse(refusal) if refusal.by.state().starts_with("banned "))
}

#[test]
fn changed_ban_or_identity_of_a_rule_ends_its_bans() {
    for scope in SCOPES {
        for (part, to) in
            [("rpu: 1", "rpu: 500"), ("for: 10m", "for: 600s"), ("keys: 100", "keys: 9")]
        {
            assert!(is_still_banned(scope, part, to), "{scope}: {part} to {to}");
        }
        for (part, to) in [
            ("for: 10m", "for: 11m"),
            ("after: 2", "after: 3"),
            ("10m}", "10m, max: 20m}"),
            (", ban: {after: 2, within: 1m, for: 10m}", ""),
            ("rpu: 1", "rpu: 1, name: other"),
            ("rpu: 1", "rpu: 1, shadow: true"),
            ("rpu: 1", "rpu: 1, except: {headers: {x-account-id: ann}}"),
        ] {
            assert!(!is_still_banned(scope, part, to), "{scope}: {part} to {to}");
        }
    }
}

const SCOPES: [&str; 2] = ["local", "gateway"];
