//! Scenarios of whole decisions.

use diana::config;
use diana::engine::Engine;
use diana::key::Seed;
use diana::port::Metrics;
use diana::port::fake::{FakeClock, FakeRequest};
use diana::time::Now;
use diana::verdict::{Refusal, Verdict};

/// An engine with its clock.
struct Gate {
    engine: Engine,
    clock: FakeClock,
}

impl Gate {
    fn new(yaml: &str) -> Gate {
        let policy = config::parse(yaml.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
        let gate = Gate {
            engine: Engine::new(policy, Seed { k0: 7, k1: 9 }),
            clock: FakeClock::default(),
        };
        // A full minute on the wall clock.
        gate.clock.0.set(Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 });
        gate
    }

    fn wait(&self, micros: u64) {
        let Now { mono, wall } = self.clock.0.get();
        self.clock.0.set(Now { mono: mono + micros, wall: wall + micros });
    }

    fn decide(&mut self, request: &FakeRequest) -> Verdict {
        self.engine.decide(request, &self.clock)
    }

    fn admits(&mut self, request: &FakeRequest) -> bool {
        matches!(self.decide(request), Verdict::Admit { .. })
    }

    fn refusal(&mut self, request: &FakeRequest) -> Refusal {
        match self.decide(request) {
            Verdict::Refuse(refusal) => refusal,
            admitted => panic!("{admitted:?}"),
        }
    }

    fn metrics(&mut self) -> Vec<String> {
        let mut lines = Lines(Vec::new());
        self.engine.flush("ns", &mut lines);
        lines.0.sort();
        lines.0
    }
}

struct Lines(Vec<String>);

impl Metrics for Lines {
    fn count(&mut self, name: &str, amount: u64) {
        self.0.push(format!("{name} {amount}"));
    }

    fn gauge(&mut self, name: &str, change: i64) {
        self.0.push(format!("{name} {change:+}"));
    }
}

fn field<'a>(fields: &'a [(&str, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
}

fn from(account: &str) -> FakeRequest {
    FakeRequest::get("/sample/1").header("x-account-id", account)
}

#[test]
fn all_rules_are_judged_and_then_all_charged() {
    let mut gate = Gate::new(
        "limits:
          - Url: /sample
            rules: [{name: inner, actor: account, unit: minute, rpu: 1, algo: W, scope: local}]
          - Url: /
            rules: [{name: outer, actor: all, unit: minute, rpu: 3, algo: W, scope: local}]",
    );
    assert!(gate.admits(&from("ann")));
    for _ in 0..5 {
        let refusal = gate.refusal(&from("ann"));
        assert!(refusal.state.contains("rule=inner"), "{}", refusal.state);
        // What `inner` refused, `outer` was not charged for.
        assert_eq!(
            field(&refusal.fields, "ratelimit").unwrap(),
            r#""outer";r=2, "inner";r=0;t=60"#
        );
    }
    assert!(gate.admits(&from("bob")));
    assert!(gate.admits(&FakeRequest::get("/other")));
    // Now the outer rule, which is judged first, refuses, and it alone is named.
    let refusal = gate.refusal(&from("cid"));
    assert!(refusal.state.contains("rule=outer"), "{}", refusal.state);
    assert_eq!(
        gate.metrics(),
        [
            "diana.ns.rule.inner.allowed 2",
            "diana.ns.rule.inner.keys +2",
            "diana.ns.rule.inner.refused 5",
            "diana.ns.rule.outer.allowed 3",
            "diana.ns.rule.outer.keys +1",
            "diana.ns.rule.outer.refused 1",
        ]
    );
    assert_eq!(gate.metrics(), Vec::<String>::new());
}

#[test]
fn the_longest_wait_among_those_that_refuse_counts() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules:
              - {name: short, actor: all, unit: second, rpu: 1, algo: W, scope: local}
              - {name: long, actor: all, unit: hour, rpu: 1, algo: TB, scope: local}",
    );
    assert!(gate.admits(&from("ann")));
    let refusal = gate.refusal(&from("ann"));
    assert!(refusal.state.starts_with("refused rule=short"), "{}", refusal.state);
    assert_eq!(field(&refusal.fields, "retry-after"), Some("3600"));
    assert_eq!(field(&refusal.fields, "x-envoy-ratelimited"), Some("true"));
    assert_eq!(
        field(&refusal.fields, "ratelimit-policy"),
        Some(r#""short";q=1;w=1, "long";q=1;w=3600"#)
    );
    gate.wait(3_600_000_000 - 1);
    assert_eq!(field(&gate.refusal(&from("ann")).fields, "retry-after"), Some("1"));
    gate.wait(1);
    assert!(gate.admits(&from("ann")));
}

#[test]
fn zero_refuses_all_without_a_time_to_come_back() {
    let mut gate = Gate::new("{Url: /, rules: [{actor: all, unit: day, rpu: 0, scope: local}]}");
    let refusal = gate.refusal(&from("ann"));
    assert_eq!(field(&refusal.fields, "retry-after"), None);
    assert!(refusal.state.contains("wait=never"), "{}", refusal.state);
}

#[test]
fn a_request_without_the_actor() {
    let yaml = |absent: &str| {
        format!(
            "{{Url: /, rules: [{{actor: account, unit: hour, rpu: 1, absent: {absent}, scope: local}}]}}"
        )
    };
    let nobody = FakeRequest::get("/");
    let twice = from("ann").header("x-account-id", "bob");
    let mut skip = Gate::new(&yaml("skip"));
    assert!((0..9).all(|_| skip.admits(&nobody)));
    // A key header that occurs twice never escapes, whatever `absent` says.
    assert!(skip.admits(&twice));
    assert!(!skip.admits(&from("x").header("x-account-id", "y")));
    let mut share = Gate::new(&yaml("share"));
    assert!(share.admits(&nobody));
    assert!(!share.admits(&nobody));
    assert!(!share.admits(&twice));
    assert!(share.admits(&from("ann")));
    let mut deny = Gate::new(&yaml("deny"));
    assert_eq!(field(&deny.refusal(&nobody).fields, "retry-after"), None);
    assert!(deny.admits(&from("ann")));
}

#[test]
fn compound_keys_and_sources_are_kept_apart() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules: [{actor: [tenant, account], unit: hour, rpu: 1, scope: local}]
actors:
  tenant: [{header: x-tenant}]",
    );
    let pair = |tenant: &str, account: &str| from(account).header("x-tenant", tenant);
    assert!(gate.admits(&pair("a", "bc")));
    assert!(gate.admits(&pair("ab", "c")));
    assert!(!gate.admits(&pair("a", "bc")));
    assert!((0..3).all(|_| gate.admits(&from("ann"))), "absent if any part is");
    // A device header that spells an address is not the caller with that address.
    let mut gate =
        Gate::new("{Url: /, rules: [{actor: device, unit: hour, rpu: 1, scope: local}]}");
    let spelled = FakeRequest::get("/").header("x-device-id", [192, 0, 2, 1]);
    assert!(gate.admits(&spelled));
    assert!(gate.admits(&FakeRequest::get("/").from("192.0.2.1:1")));
    assert!(!gate.admits(&FakeRequest::get("/").from("192.0.2.1:2")));
}

#[test]
fn a_shadow_rule_reports_and_never_refuses() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules:
              - {name: dark, actor: all, unit: hour, rpu: 1, shadow: true, scope: local}
              - {name: live, actor: all, unit: hour, rpu: 3, scope: local}",
    );
    assert_eq!(gate.decide(&from("ann")), Verdict::PASS);
    match gate.decide(&from("ann")) {
        Verdict::Admit { fields, state } => {
            assert!(fields.is_empty());
            assert!(state.unwrap().starts_with("shadow rule=dark scope=local mode=shadow"));
        }
        refused => panic!("{refused:?}"),
    }
    assert!(gate.admits(&from("ann")));
    let refusal = gate.refusal(&from("ann"));
    assert_eq!(field(&refusal.fields, "ratelimit-policy"), Some(r#""live";q=3;w=3600"#));
    assert_eq!(
        gate.metrics(),
        [
            "diana.ns.rule.dark.allowed 1",
            "diana.ns.rule.dark.keys +1",
            "diana.ns.rule.dark.shadow_refused 3",
            "diana.ns.rule.live.allowed 3",
            "diana.ns.rule.live.keys +1",
            "diana.ns.rule.live.refused 1",
        ]
    );
}

#[test]
fn enforcement_is_by_caller_and_by_their_share() {
    let yaml = |percent: u8| {
        format!(
            "{{Url: /, rules: [{{actor: account, unit: day, rpu: 1, enforce: {percent}, scope: local}}]}}"
        )
    };
    let enforced = |percent: u8| -> Vec<usize> {
        let mut gate = Gate::new(&yaml(percent));
        let caller = |number: usize| from(&format!("caller-{number}"));
        (0..2000).for_each(|number| assert!(gate.admits(&caller(number))));
        (0..2000).filter(|&number| !gate.admits(&caller(number))).collect()
    };
    assert_eq!(enforced(0).len(), 0);
    assert_eq!(enforced(100).len(), 2000);
    let (some, more) = (enforced(10), enforced(40));
    assert!((140..260).contains(&some.len()), "{}", some.len());
    assert!(some.iter().all(|caller| more.contains(caller)), "a larger share holds the smaller");
}

#[test]
fn exemptions_on_every_level() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            except: {headers: {x-probe: {exact: '1'}}}
            rules:
              - {actor: all, unit: day, rpu: 0, scope: local, except: {addresses: [10.0.0.0/8]}}
except: {paths: [/healthz]}",
    );
    assert!(gate.admits(&FakeRequest::get("/healthz/live")));
    assert!(gate.admits(&FakeRequest::get("/a").header("x-probe", "1")));
    assert!(gate.admits(&FakeRequest::get("/a").from("10.9.9.9:1")));
    assert!(!gate.admits(&FakeRequest::get("/healthzz").from("11.9.9.9:1").header("x-probe", "2")));
}

#[test]
fn methods_hosts_and_headers_must_all_match() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            match: {methods: [POST], hosts: ['*.example.com'], headers: {x-app: {prefix: mobile}}}
            rules: [{actor: all, unit: day, rpu: 0, scope: local}]",
    );
    let mut post = FakeRequest::get("/").header("x-app", "mobile-7");
    post.method = Some("POST".into());
    post.authority = Some("api.Example.com:8080".into());
    assert!(!gate.admits(&post));
    let other = |change: fn(&mut FakeRequest)| {
        let mut request = post.clone();
        change(&mut request);
        request
    };
    assert!(gate.admits(&other(|request| request.method = Some("GET".into()))));
    assert!(gate.admits(&other(|request| request.authority = Some("example.com".into()))));
    assert!(gate.admits(&other(|request| request.authority = None)));
    assert!(gate.admits(&other(|request| request.headers.clear())));
}

#[test]
fn requests_without_a_path_fall_under_the_root() {
    let mut gate = Gate::new(
        "limits:
          - {Url: /, rules: [{actor: all, unit: hour, rpu: 2, scope: local}]}
          - {Url: /deep, rules: [{actor: all, unit: hour, rpu: 0, scope: local}]}",
    );
    assert!(gate.admits(&FakeRequest { path: None, ..FakeRequest::get("/") }));
    assert!(gate.admits(&FakeRequest::get("*")));
    assert!(!gate.admits(&FakeRequest::get("*")));
}

#[test]
fn accepted_requests_report_what_was_asked_for() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules:
              - {name: wide, actor: all, unit: hour, rpu: 9, algo: W, scope: local}
              - {name: near, actor: all, unit: hour, rpu: 2, algo: W, scope: local}
              - {name: hidden, actor: all, unit: hour, rpu: 5, expose: false, scope: local}
accepted: {headers: true, filter_state: true}",
    );
    let Verdict::Admit { fields, state } = gate.decide(&from("ann")) else { panic!("refused") };
    assert_eq!(field(&fields, "ratelimit"), Some(r#""wide";r=8, "near";r=1"#));
    assert_eq!(field(&fields, "ratelimit-policy"), Some(r#""wide";q=9;w=3600, "near";q=2;w=3600"#));
    assert!(state.unwrap().starts_with("admitted rule=near"));
}

#[test]
fn refusals_are_logged_once_a_second_and_rule() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: none, actor: all, unit: day, rpu: 0, scope: local}]}]
log: refused",
    );
    let mut logged = 0;
    for _ in 0..50 {
        logged += usize::from(gate.refusal(&from("ann")).log.is_some());
        gate.wait(100_000);
    }
    assert_eq!(logged, 5);
}

#[test]
fn no_rule_no_clock() {
    struct Broken;
    impl diana::port::Clock for Broken {
        fn now(&self) -> Now {
            panic!("nobody needs the time")
        }
    }
    let policy = config::parse(b"limits: [{Url: /a, rules: [{actor: all, unit: day, rpu: 0}]}]");
    let mut engine = Engine::new(policy.unwrap(), Seed { k0: 0, k1: 0 });
    assert_eq!(engine.decide(&FakeRequest::get("/b"), &Broken), Verdict::PASS);
}

#[test]
fn an_engine_that_retires_leaves_no_callers_in_the_gauge() {
    let mut gate = Gate::new(
        "limits: [{Url: /, rules: [{name: one, actor: account, unit: day, rpu: 1, scope: local}]}]",
    );
    assert!(gate.admits(&from("ann")) && gate.admits(&from("bob")));
    assert!(gate.metrics().contains(&"diana.ns.rule.one.keys +2".to_owned()));
    let mut lines = Lines(Vec::new());
    gate.engine.retire("ns", &mut lines);
    assert_eq!(lines.0, ["diana.ns.rule.one.keys -2"]);
}

#[test]
fn a_refusal_names_the_instant_at_which_it_ends() {
    let rules = [
        "unit: minute, rpu: 60, cost: 2, algo: LB",
        "unit: minute, rpu: 60, cost: 30, algo: LB",
        "unit: second, rpu: 3, algo: LB, max_queue: 0",
        "unit: second, rpu: 7, cost: 2, algo: TB",
        "unit: second, rpu: 7, cost: 3, algo: SW",
        "unit: second, rpu: 7, cost: 3, algo: W",
    ];
    for rule in rules {
        let yaml = format!("{{Url: /, rules: [{{actor: all, scope: local, {rule}}}]}}");
        let mut gate = Gate::new(&yaml);
        for step in [0, 50_000, 0, 1, 0] {
            gate.wait(step);
            let Verdict::Refuse(refusal) = gate.decide(&from("ann")) else { continue };
            let wait = refusal.state.split("wait=").nth(1).unwrap().split('s').next().unwrap();
            let wait: u64 = wait.replace('.', "").parse().unwrap();
            gate.wait(wait - 1);
            assert!(!gate.admits(&from("ann")), "{rule}: {wait} is too long");
            gate.wait(1);
            assert!(gate.admits(&from("ann")), "{rule}: {wait} is too short");
        }
    }
}

#[test]
fn a_path_is_exempt_only_as_it_is_written() {
    let mut gate = Gate::new(
        "limits: [{Url: /share/qq, rules: [{actor: all, unit: day, rpu: 0, scope: local}]},
                  {Url: /, rules: [{actor: all, unit: day, rpu: 0, scope: local}]}]
except: {paths: [/healthz]}",
    );
    assert!(gate.admits(&FakeRequest::get("/healthz")));
    assert!(gate.admits(&FakeRequest::get("/healthz/?full=1")));
    // What a router or an upstream makes of these is anybody's guess.
    for path in [
        "/share/qq/..;/..;/healthz",
        "/share/qq\\..\\..\\healthz",
        "/share/qq/%2e%2e%2f%2e%2e%2fhealthz",
        "//healthz",
        "/healthz/../share/qq",
    ] {
        assert!(!gate.admits(&FakeRequest::get(path)), "{path}");
    }
}
