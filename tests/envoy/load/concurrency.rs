//! Workers share limits: over many concurrent connections, no more than the limit is admitted.

use std::thread;

use crate::harness::{Client, Gateway, request};
use crate::settling::upstream::{self, ACT};

const LIMIT: usize = 1_000;
const CONNECTIONS: usize = 16;

const RULES: &str = "
limits:
  - {Url: /window, rules: [{actor: account, unit: day, rpu: 1000, algo: W}]}
  - {Url: /sliding, rules: [{actor: account, unit: day, rpu: 1000, algo: SW}]}
  - {Url: /bucket, rules: [{actor: account, unit: day, rpu: 1, burst: 1000, algo: TB}]}
";

/// Sends `each` equal requests on each connection concurrently. Returns the counts of two statuses.
#[track_caller]
fn at_once(
    port: u16,
    connections: usize,
    each: usize,
    bytes: &[u8],
    statuses: [u16; 2],
) -> [usize; 2] {
    let send = || {
        let mut client = Client::connect(port).unwrap();
        (0..each).map(|_| client.send(bytes).unwrap().status).collect::<Vec<u16>>()
    };
    let all: Vec<u16> = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(send)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|status| statuses.contains(status)), "{all:?}");
    statuses.map(|status| all.iter().filter(|found| **found == status).count())
}

#[test]
fn gateway_limits_hold_over_all_workers() {
    let envoy = Gateway::with(RULES).workers(4).without_access_log().start();
    for path in ["/window", "/sliding", "/bucket"] {
        let bytes = request("GET", path, &[("x-account-id", "a")]);
        let each = 2 * LIMIT / CONNECTIONS;
        let [admitted, _] = at_once(envoy.port, CONNECTIONS, each, &bytes, [200, 503]);
        assert!(admitted <= LIMIT, "{path}: {admitted} of {LIMIT}");
        let [more, _] = at_once(envoy.port, 1, LIMIT, &bytes, [200, 503]);
        assert!(admitted + more <= LIMIT, "{path}: {admitted} and {more} of {LIMIT}");
        println!("{path}: {admitted} admitted at once, {more} afterwards, of {LIMIT}");
    }
    envoy.assert_unharmed();
}

#[test]
fn login_limit_admits_five_wrong_passwords() {
    let service = upstream::start();
    let rules = "limits:
  - Url: /login
    rules: [{name: logins, actor: address, unit: day, rpu: 5, algo: SW, count: {status: [401]}}]";
    let envoy = Gateway::with(rules).workers(4).before(&service).start();
    let wrong = request("GET", "/login", &[(ACT, "sleep 2 status 401")]);
    let [counted, _] = at_once(envoy.port, 50, 10, &wrong, [401, 503]);
    assert!(counted <= 5, "{counted} wrong passwords");
    println!("{counted} of 5 wrong passwords reached the service");
    envoy.assert_unharmed();
}
