//! Requests in flight: never more than the limit of a caller's, and all of its places again whatever becomes of them.

mod long;

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Arrival, Client, Envoy, Gateway, Upstream, alone, eventually, request};
use crate::metrics::settles;

pub const LIMIT: usize = 20;

/// Clients that try at once, and how often each of them is let in.
const CLIENTS: usize = 500;
const TIMES: usize = 4;

/// Within this time the places of whoever died are free.
pub const AGAIN: Duration = Duration::from_secs(2);

pub fn rules(scope: &str) -> String {
    format!(
        "limits:
  - Url: /
    rules: [{{name: few, actor: account, in_flight: {LIMIT}, scope: {scope}}}]"
    )
}

/// Requests that the service is at, of each account.
static AT_ONCE: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
static MOST: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Takes some milliseconds for each.
fn count(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    let account: usize = arrival.header("x-account-id").unwrap_or_default().parse().unwrap_or(0);
    let now = AT_ONCE[account].fetch_add(1, Ordering::SeqCst) + 1;
    MOST[account].fetch_max(now, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
    AT_ONCE[account].fetch_sub(1, Ordering::SeqCst);
    to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")
}

/// A service that counts.
pub fn counting() -> Upstream {
    Upstream::answering(count)
}

/// Lets hundreds of an account come at once to gateways in front of that service, who try again after a pause, until it was
/// nearly full once. How many it was at, at most.
pub fn play(envoys: &[Envoy], account: usize, pause: Duration) -> usize {
    eventually("the service to be nearly full", || {
        let most = come(envoys, account, pause);
        // Until a place is free again takes as long as it takes Redis to hear of it.
        (most >= LIMIT * 3 / 4).then_some(most)
    })
}

fn come(envoys: &[Envoy], account: usize, pause: Duration) -> usize {
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let port = envoys[number % envoys.len()].port;
            scope.spawn(move || {
                let mut client = Client::connect(port).unwrap();
                let bytes = request("GET", "/", &[("x-account-id", &account.to_string())]);
                for _ in 0..TIMES {
                    eventually("to be let in", || {
                        let response = client.send(&bytes).unwrap();
                        assert!(response.status == 200 || response.refused(), "{response:?}");
                        thread::sleep(pause * u32::from(response.refused()));
                        (response.status == 200).then_some(())
                    });
                }
            });
        }
    });
    MOST[account].load(Ordering::SeqCst)
}

#[test]
fn twenty_at_a_time_of_hundreds_and_never_one_more() {
    let service = counting();
    let envoys = [Gateway::with(&rules("gateway")).workers(4).before(&service).start()];
    let most = play(&envoys, 0, Duration::from_millis(10));
    assert!(most <= LIMIT, "{most} of {LIMIT} at once");
    settles(&envoys[0], "rule.few.in_flight", 0);
    envoys[0].assert_unharmed();
}

/// Begins an answer that has no end.
pub fn hang(_: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")?;
    thread::sleep(Duration::from_secs(60));
    Ok(())
}

/// As many requests as get in, all of which stay; and the refusal of the next one.
pub fn fill(envoy: &Envoy) -> Vec<Client> {
    let mut open = Vec::new();
    let bytes = request("GET", "/", &[("x-account-id", "ada")]);
    loop {
        let mut client = Client::connect(envoy.port).unwrap();
        client.write(&bytes).unwrap();
        if client.wait().unwrap() != Some(200) {
            let response = client.read().unwrap();
            assert!(response.refused(), "{response:?}");
            assert_eq!(response.header("retry-after"), Some("1"));
            let policy = response.header("ratelimit-policy").unwrap_or_default();
            assert!(policy.ends_with(";qu=\"concurrent-requests\""), "{policy}");
            return open;
        }
        open.push(client);
    }
}

#[test]
fn all_places_are_free_again_when_all_clients_have_left_at_once() {
    let service = Upstream::answering(hang);
    for scope in ["local", "gateway"] {
        let workers = if scope == "local" { 1 } else { 4 };
        let envoy = Gateway::with(&rules(scope)).workers(workers).before(&service).start();
        for _ in 0..3 {
            let open = fill(&envoy);
            assert_eq!(open.len(), LIMIT);
            open.into_iter().for_each(Client::reset);
            envoy.wait_for_active(0..=0);
        }
        settles(&envoy, "rule.few.in_flight", 0);
        envoy.assert_unharmed();
    }
}

/// Those of a VM that died may run on; their places do not stay taken.
#[test]
fn the_places_of_workers_that_died_are_free_again_within_two_seconds() {
    alone();
    let service = Upstream::answering(hang);
    let envoy = Gateway::with(&rules("gateway")).workers(4).trap_door().before(&service).start();
    let open = fill(&envoy);
    assert_eq!(open.len(), LIMIT);
    // Each connection is another worker's; most of them hold some of the places.
    for _ in 0..30 {
        envoy.kill_vm("/");
    }
    let killed = Instant::now();
    drop(open);
    envoy.wait_for_active(0..=0);
    eventually("other VMs", || {
        // One at a time, each to another worker.
        let is_alive = |_| {
            let mut client = Client::connect(envoy.port).unwrap();
            client.write(&request("GET", "/", &[("x-account-id", "bob")])).unwrap();
            let status = client.wait().unwrap();
            client.reset();
            status == Some(200)
        };
        (0..30).all(is_alive).then_some(())
    });
    assert!(envoy.stat("wasm.diana.vm_reload_success") >= Some(1), "{}", envoy.log());
    thread::sleep((killed + AGAIN).saturating_duration_since(Instant::now()));
    assert_eq!(fill(&envoy).len(), LIMIT);
}
