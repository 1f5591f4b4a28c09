//! Requests in flight: never more than the limit of a caller's, and all of its places again whatever becomes of them.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{
    Arrival, Client, DEADLY, Envoy, Gateway, Upstream, alone, eventually, request,
};
use crate::metrics::settles;

const LIMIT: usize = 20;

/// Clients that try at once, and how often each of them is let in.
const CLIENTS: usize = 500;
const TIMES: usize = 4;

/// Within this time the places of whoever died are free.
const AGAIN: Duration = Duration::from_secs(2);

fn rules(scope: &str) -> String {
    format!(
        "limits:
  - Url: /
    rules: [{{name: few, actor: account, in_flight: {LIMIT}, scope: {scope}}}]"
    )
}

/// Requests that the service is at.
static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Takes some milliseconds for each.
fn count(_: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    let now = AT_ONCE.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(now, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
    AT_ONCE.fetch_sub(1, Ordering::SeqCst);
    io::Write::write_all(to, b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")
}

#[test]
fn twenty_at_a_time_of_hundreds_and_never_one_more() {
    let service = Upstream::answering(count);
    let envoy = Gateway::with(&rules("gateway")).workers(4).before(&service).start();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::connect(envoy.port).unwrap();
                let bytes = request("GET", "/", &[("x-account-id", "ada")]);
                for _ in 0..TIMES {
                    eventually("to be let in", || {
                        let response = client.send(&bytes).unwrap();
                        assert!(response.status == 200 || response.refused(), "{response:?}");
                        thread::sleep(Duration::from_millis(u64::from(response.refused()) * 10));
                        (response.status == 200).then_some(())
                    });
                }
            });
        }
    });
    assert_eq!(MOST.load(Ordering::SeqCst), LIMIT, "of {CLIENTS} at once");
    let refused = envoy.sum("wasmcustom.diana.diana.rule.few.refused");
    println!("{} let in, {refused} refused", CLIENTS * TIMES);
    settles(&envoy, "rule.few.in_flight", 0);
    envoy.assert_unharmed();
}

/// Begins an answer that has no end.
fn hang(_: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    io::Write::write_all(to, b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")?;
    thread::sleep(Duration::from_secs(60));
    Ok(())
}

/// As many requests as get in, all of which stay; and the refusal of the next one.
fn fill(envoy: &Envoy) -> Vec<Client> {
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
            assert!(policy.ends_with(";q=20;qu=\"concurrent-requests\""), "{policy}");
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
    let names: Vec<String> = (0..DEADLY).map(|number| format!("x-{number}")).collect();
    let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    // Each connection is another worker's; most of them hold some of the places.
    for _ in 0..30 {
        assert_ne!(envoy.get("/", &headers).status, 200);
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
