//! Changes of remote rules under load.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Client, ConfigServer, OpenLoad, ServerResponse, eventually, request};
use crate::remote::{document, gateway, lines, metric, settles_on};

const WORKERS: u32 = 3;
const CHANGES: u32 = 7;

/// Waits until the document decides the requests on all these connections.
#[track_caller]
fn all_settle_on(clients: &mut [Client], name: &str) {
    let bytes = request("GET", "/closed", &[]);
    for client in clients {
        eventually(&format!("the rules of `{name}`"), || {
            let refused = client.send(&bytes).unwrap();
            let policy = refused.header("ratelimit-policy").unwrap();
            policy.contains(&format!("\"{name}\"")).then_some(())
        });
    }
}

#[test]
fn remote_change_reaches_all_workers_and_fails_no_request() {
    let config_server = ConfigServer::start(ServerResponse::Text(document("first", 1_000_000)));
    let envoy = gateway(config_server.port).workers(WORKERS).start();
    settles_on(&envoy, "first");
    // The probability that one of the workers has none of these connections is 10⁻⁵.
    let mut clients: Vec<Client> = (0..30).map(|_| Client::connect(envoy.port).unwrap()).collect();
    let load = OpenLoad {
        gateways: &[envoy.port],
        rate: 300,
        lasting: Duration::from_secs(120),
        connections: 20,
        requests: &[request("GET", "/", &[])],
    };
    let (hits, times) = load.fire_during(|| {
        let change = |number: u32| {
            let name = format!("change-{number}");
            // Each change is at another moment of the second after which the leader polls.
            thread::sleep(Duration::from_secs(1) * number / CHANGES);
            let start = Instant::now();
            config_server.respond_with(ServerResponse::Text(document(&name, 1_000_000)));
            all_settle_on(&mut clients, &name);
            start.elapsed()
        };
        (0..CHANGES).map(change).collect::<Vec<Duration>>()
    });
    println!("from a change to the last worker: {times:?}");
    let failed: Vec<_> = hits.iter().filter(|hit| hit.status != 200).collect();
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
    eventually("the gauge of all VMs", || {
        (metric(&envoy, "in_force") == u64::from(WORKERS + 1)).then_some(())
    });
    let count = lines(&envoy).len();
    println!("{count} lines of the log, {} documents applied", metric(&envoy, "applied"));
    envoy.assert_unharmed();
}
