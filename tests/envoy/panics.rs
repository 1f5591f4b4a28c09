//! Panics in the native module, in each of its hooks. Such a panic is a bug of Diana. It may cost requests their check, and never
//! a response or the process.
//!
//! The library of these tests panics in the hook that a file names.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use crate::harness::{
    Client, ConfigServer, Envoy, Gateway, Redis, ServerResponse, Upstream, eventually, exchange,
    is_native, request,
};
use crate::remote::{self, document, settles_on};

/// Slots are free again at the end of a stream, so all hooks have work.
const RULES: &str = "
accepted: {headers: true}
limits:
  - Url: /
    rules: [{name: open, actor: all, in_flight: 900, scope: local}]
  - Url: /counted
    rules: [{name: counted, actor: account, unit: day, rpu: 3, algo: SW, scope: local}]
  - Url: /held
    rules: [{name: held, actor: all, unit: second, rpu: 20, algo: LB, max_delay: 9s, max_queue: 90}]
  - Url: /slow
    rules: [{name: slow, actor: all, unit: minute, rpu: 20, algo: LB, max_delay: 20s, max_queue: 90}]
";

/// Hooks of streams that call the worker, and the timer.
const CALLING: [&str; 5] =
    ["request_headers", "response_headers", "stream_complete", "scheduled", "timer"];

/// All hooks of streams and the timer, as they begin.
const BEGINNING: [&str; 7] = [
    "new",
    "request_headers",
    "response_headers",
    "stream_complete",
    "destroy",
    "scheduled",
    "timer",
];

/// A gateway with a library that panics.
struct Faulty {
    envoy: Envoy,
    file: PathBuf,
}

impl Faulty {
    /// With the rules, and further settings.
    fn start(name: &str, settings: &str) -> Self {
        Self::of(name, Gateway::with(&format!("{settings}{RULES}")))
    }

    fn of(name: &str, gateway: Gateway) -> Self {
        let name = format!("fault-{}-{name}", std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let gateway = gateway.faulty_library();
        let envoy = gateway.variable("DIANA_FAULTS", file.to_str().unwrap()).start();
        Self { envoy, file }
    }

    fn panic_in(&self, hook: &str) {
        fs::write(&self.file, hook).unwrap();
    }

    /// Sends a request in a thread.
    fn spawn(&self, path: &'static str) -> JoinHandle<u16> {
        let port = self.envoy.port;
        thread::spawn(move || {
            let mut client = Client::connect(port).unwrap();
            client.send(&request("GET", path, &[])).unwrap().status
        })
    }

    fn stop(&self) {
        fs::remove_file(&self.file).unwrap();
    }

    /// The panics in a hook that were caught.
    fn caught(&self, hook: &str) -> usize {
        self.envoy.log().matches(&format!("the panic in `{hook}` was caught")).count()
    }

    /// The same, from the metric.
    fn counted(&self, hook: &str) -> Option<u64> {
        self.envoy.stat(&format!("diana.faults.hook.{hook}"))
    }

    /// Waits for this number of panics in a hook.
    #[track_caller]
    fn wait_for(&self, hook: &str, panics: usize) {
        eventually(&format!("panics in {hook}"), || (self.caught(hook) >= panics).then_some(()));
    }

    /// Fails unless the rule counts as if nothing had happened.
    #[track_caller]
    fn assert_counts(&self, account: &str) {
        let statuses = self.envoy.statuses(4, "/counted", &[("x-account-id", account)]);
        assert_eq!(statuses, [200, 200, 200, 503], "{account}:\n{}", self.envoy.log());
    }
}

#[test]
fn panic_in_any_hook_costs_no_response() {
    if !is_native() {
        return;
    }
    let faulty = Faulty::start("hooks", "");
    let calling = CALLING.iter().map(|hook| (*hook).into());
    let beginning = BEGINNING.iter().map(|hook| format!("before {hook}"));
    for fault in calling.chain(beginning) {
        let hook = fault.trim_start_matches("before ");
        let before = faulty.caught(hook);
        faulty.panic_in(&fault);
        let held: Vec<_> = (0..6).map(|_| faulty.spawn("/held")).collect();
        for _ in 0..9 {
            let status = faulty.envoy.get("/counted", &[("x-account-id", &fault)]).status;
            assert!([200, 503].contains(&status), "{fault}: {status}");
        }
        faulty.wait_for(hook, before + 1);
        faulty.stop();
        for held in held {
            assert_eq!(held.join().unwrap(), 200, "{fault}:\n{}", faulty.envoy.log());
        }
        faulty.assert_counts(&format!("after {fault}"));
    }
}

/// Envoy calls this hook for requests that go to an upstream.
#[test]
fn panic_at_a_body_costs_no_response() {
    if !is_native() {
        return;
    }
    let service = Upstream::start();
    let faulty = Faulty::of("body", Gateway::with(RULES).before(&service));
    faulty.panic_in("before request_body");
    let bytes = [request("POST", "/", &[("content-length", "1")]), b"a".into()].concat();
    assert_eq!(exchange(faulty.envoy.port, &bytes).unwrap().status, 200);
    faulty.wait_for("request_body", 1);
    faulty.stop();
    faulty.assert_counts("ada");
}

/// The requests that the hook should have checked, or that waited.
#[test]
fn panic_refuses_requests_if_the_document_says_so() {
    if !is_native() {
        return;
    }
    let faulty = Faulty::start("refuse", "on_fault: refuse");
    for fault in ["request_headers", "before request_headers", "before new"] {
        faulty.panic_in(fault);
        let response = faulty.envoy.get("/counted", &[("x-account-id", fault)]);
        assert_eq!((response.status, response.header("retry-after")), (503, Some("1")), "{fault}");
        faulty.stop();
        faulty.assert_counts(&format!("after {fault}"));
    }
    // All permits of the bucket, so that the next requests wait.
    let held: Vec<_> = (0..6).map(|_| faulty.spawn("/slow")).collect();
    faulty.envoy.wait_for_active(5..=5);
    faulty.panic_in("timer");
    let statuses: Vec<u16> = held.into_iter().map(|held| held.join().unwrap()).collect();
    faulty.stop();
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&503), "{statuses:?}:\n{}", faulty.envoy.log());
}

#[test]
fn thousand_panics_in_a_row_cost_no_response() {
    if !is_native() {
        return;
    }
    let faulty = Faulty::start("thousand", "");
    let mut client = Client::connect(faulty.envoy.port).unwrap();
    for (fault, path) in [
        ("request_headers", "/counted"),
        ("before new", "/counted"),
        ("before stream_complete", "/counted"),
        ("response_headers", "/open"),
    ] {
        let hook = fault.trim_start_matches("before ");
        let before = faulty.caught(hook);
        faulty.panic_in(fault);
        for number in 0..1_000 {
            let account = format!("{fault}-{number}");
            let headers = [("x-account-id", account.as_str())];
            assert_eq!(client.send(&request("GET", path, &headers)).unwrap().status, 200);
        }
        faulty.wait_for(hook, before + 1_000);
        faulty.stop();
        faulty.assert_counts(&format!("after {fault}"));
        // Envoy 1.38 takes metrics with a request only, which this has brought.
        eventually("all panics", || (faulty.counted(hook) == Some(1_000)).then_some(()));
    }
}

/// Envoy keeps the old configuration, as after any other refusal.
#[test]
fn panic_in_an_update_leaves_the_old_rules_in_force() {
    if !is_native() {
        return;
    }
    let faulty = Faulty::start("update", "");
    faulty.panic_in("config_new");
    faulty.envoy.put(&Gateway::with("limits: []").faulty_library());
    let rejected = || faulty.envoy.stat("listener_manager.lds.update_rejected");
    eventually("Envoy to reject it", || (rejected() == Some(1)).then_some(()));
    faulty.stop();
    faulty.assert_counts("ada");
}

/// Envoy has dropped the old configuration, and the next one counts on.
#[test]
fn panic_at_the_end_of_a_configuration_harms_no_other() {
    if !is_native() {
        return;
    }
    let gateway = |keys: u32| Gateway::with(&format!("keys: {keys}{RULES}")).drains_for(1);
    let faulty = Faulty::of("end", gateway(1000));
    faulty.panic_in("config_destroy");
    faulty.envoy.update(&gateway(2000).faulty_library());
    faulty.wait_for("config_destroy", 1);
    faulty.stop();
    faulty.assert_counts("ada");
}

#[test]
fn panic_at_a_reply_costs_no_later_reply() {
    if !is_native() {
        return;
    }
    let server = ConfigServer::start(ServerResponse::Text(document("first", 10)));
    let faulty = Faulty::of("reply", remote::gateway(server.port));
    settles_on(&faulty.envoy, "first");
    for (number, fault) in
        ["http_callout_done", "before http_callout_done", "before config_scheduled"]
            .iter()
            .enumerate()
    {
        let hook = fault.trim_start_matches("before ");
        let before = faulty.caught(hook);
        faulty.panic_in(fault);
        let name = format!("after-{number}");
        server.respond_with(ServerResponse::Text(document(&name, 10)));
        faulty.wait_for(hook, before + 1);
        faulty.stop();
        settles_on(&faulty.envoy, &name);
    }
}

/// The thread for calls by a pipe makes the next ones.
#[test]
fn panic_at_a_reply_of_redis_costs_no_later_reply() {
    if !is_native() {
        return;
    }
    const FLEET: &str = "
redis: {pipe: target/redis.sock, timeout: 1s, on_failure: allow}
limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 2, algo: W, scope: global}]}]";
    let redis = Redis::start();
    let faulty = Faulty::of("pipe", Gateway::with(FLEET).redis_by_pipe(redis.port));
    let statuses = |account: &str| faulty.envoy.statuses(3, "/", &[("x-account-id", account)]);
    assert_eq!(statuses("ada"), [200, 200, 503]);
    for fault in ["pipe", "before pipe"] {
        let before = faulty.caught("pipe");
        faulty.panic_in(fault);
        assert_eq!(statuses(fault), [200; 3]);
        faulty.wait_for("pipe", before + 1);
        faulty.stop();
        eventually("Redis to count again", || {
            let account = format!("{fault} {}", faulty.envoy.log().len());
            (statuses(&account) == [200, 200, 503]).then_some(())
        });
    }
}
