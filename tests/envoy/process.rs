//! The shipped file of the native module, and its workers, which count `gateway` rules in one table: they lease no permits.

use std::thread;

use crate::harness::{Client, Gateway, is_native, request, start_whole};

const LIMIT: usize = 1_000;

/// Connections, which the kernel distributes over the workers, and requests of each.
const CONNECTIONS: usize = 16;
const EACH: usize = 150;

/// How many requests of all connections at once are admitted.
fn admitted(port: u16, path: &str, account: &str) -> usize {
    let of_a_connection = || {
        let mut client = Client::connect(port).unwrap();
        let request = request("GET", path, &[("x-account-id", account)]);
        let statuses: Vec<u16> = (0..EACH).map(|_| client.send(&request).unwrap().status).collect();
        assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
        statuses.iter().filter(|status| **status == 200).count()
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(of_a_connection)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    })
}

#[test]
fn shipped_file_limits_each_account() {
    if !is_native() {
        return;
    }
    let envoy = start_whole("envoy/native.yaml", None);
    for account in ["ada", "bob"] {
        let statuses = envoy.statuses(3, "/reports", &[("x-account-id", account)]);
        assert_eq!(statuses, [200, 200, 503], "{account}");
    }
    envoy.assert_unharmed();
}

#[test]
fn four_workers_admit_exactly_the_limit() {
    if !is_native() {
        return;
    }
    let envoy = Gateway::with(
        "
limits:
  - Url: /window
    rules: [{actor: account, unit: day, rpu: 1000, algo: W, scope: gateway}]
  - Url: /sliding
    rules: [{actor: account, unit: day, rpu: 1000, algo: SW, scope: gateway}]
  - Url: /three
    rules: [{actor: account, unit: day, rpu: 1000, algo: W, scope: gateway},
      {actor: account, unit: day, rpu: 1500, algo: SW, scope: gateway},
      {actor: all, unit: day, rpu: 2000, algo: W, scope: gateway}]
",
    )
    .workers(4)
    .start();
    for path in ["/window", "/sliding", "/three"] {
        for account in ["ada", "bob"] {
            assert_eq!(admitted(envoy.port, path, account), LIMIT, "{path} {account}");
        }
    }
    // Both have used the permits of all callers.
    assert_eq!(admitted(envoy.port, "/three", "eve"), 0);
    envoy.assert_unharmed();
}
