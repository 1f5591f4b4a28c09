//! Panics in the native module, in each of its hooks. Such a panic is a bug of Diana. It may cost requests their check, and never
//! a response or the process.
//!
//! The library of these tests panics in the hook that a file names.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::harness::{Client, Envoy, Gateway, eventually, is_native, request};

/// The charges of `/` are settled at the end of a stream, so all hooks have work.
const RULES: &str = "
accepted: {headers: true}
limits:
  - Url: /counted
    rules: [{name: counted, actor: account, unit: day, rpu: 3, algo: SW, count: {status: [2xx]}, scope: local}]
  - Url: /held
    rules: [{name: held, actor: all, unit: second, rpu: 20, algo: LB, max_delay: 9s, max_queue: 90}]
";

/// Hooks of streams that call the worker, and the timer. `destroy` does so only if another hook has failed.
const HOOKS: [&str; 5] =
    ["request_headers", "response_headers", "stream_complete", "scheduled", "timer"];

/// A gateway with a library that panics.
struct Faulty {
    envoy: Envoy,
    file: PathBuf,
}

impl Faulty {
    fn start(name: &str) -> Self {
        let name = format!("fault-{}-{name}", std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let gateway = Gateway::with(RULES).faulty_library();
        let envoy = gateway.variable("DIANA_FAULTS", file.to_str().unwrap()).start();
        Self { envoy, file }
    }

    fn panic_in(&self, hook: &str) {
        fs::write(&self.file, hook).unwrap();
    }

    fn stop(&self) {
        fs::remove_file(&self.file).unwrap();
    }

    /// The panics in a hook that were caught.
    fn caught(&self, hook: &str) -> u64 {
        self.envoy.stat(&format!("diana.faults.hook.{hook}")).unwrap_or(0)
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
    let faulty = Faulty::start("hooks");
    for hook in HOOKS {
        faulty.panic_in(hook);
        let held: Vec<_> = (0..6)
            .map(|_| {
                let port = faulty.envoy.port;
                thread::spawn(move || {
                    let mut client = Client::connect(port).unwrap();
                    client.send(&request("GET", "/held", &[])).unwrap().status
                })
            })
            .collect();
        for _ in 0..9 {
            let status = faulty.envoy.get("/counted", &[("x-account-id", hook)]).status;
            assert!([200, 503].contains(&status), "{hook}: {status}");
        }
        eventually(&format!("a panic in {hook}"), || (faulty.caught(hook) > 0).then_some(()));
        faulty.stop();
        for held in held {
            assert_eq!(held.join().unwrap(), 200, "{hook}:\n{}", faulty.envoy.log());
        }
        faulty.assert_counts(&format!("after {hook}"));
    }
}

#[test]
fn thousand_panics_in_a_row_cost_no_response() {
    if !is_native() {
        return;
    }
    let faulty = Faulty::start("thousand");
    faulty.panic_in("request_headers");
    let mut client = Client::connect(faulty.envoy.port).unwrap();
    for _ in 0..1_000 {
        let headers = [("x-account-id", "ada")];
        assert_eq!(client.send(&request("GET", "/counted", &headers)).unwrap().status, 200);
    }
    faulty.stop();
    faulty.assert_counts("bob");
    eventually("all panics", || (faulty.caught("request_headers") == 1_000).then_some(()));
}

/// Envoy keeps the old configuration, as after any other refusal.
#[test]
fn panic_in_an_update_leaves_the_old_rules_in_force() {
    if !is_native() {
        return;
    }
    let faulty = Faulty::start("update");
    faulty.panic_in("config_new");
    faulty.envoy.put(&Gateway::with("limits: []").faulty_library());
    let rejected = || faulty.envoy.stat("listener_manager.lds.update_rejected");
    eventually("Envoy to reject it", || (rejected() == Some(1)).then_some(()));
    faulty.stop();
    faulty.assert_counts("ada");
}
